"""Messages about the servers, services and programs that a command will use, and their API keys."""

import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

from unreel.cli.output import print_message
from unreel.core.server_keys import find_server_key_variable, parse_server_url
from unreel.core.settings import EnvironmentSettings
from unreel.creators.config import CreatorRecipeSection
from unreel.creators.endpoint.config import EndpointCreatorConfig
from unreel.reviewers.config import ReviewerSection
from unreel.reviewers.endpoint.model_address import is_server_model
from unreel.reviewers.endpoint.servers import (
    is_server_listening,
    list_model_endpoints,
    require_server_listening,
)
from unreel.reviewers.external.bubblewrap import (
    find_program_readable_paths,
    require_program_sandbox,
)
from unreel.reviewers.external.detector_program import resolve_command_files


def print_model_servers(models: Sequence[str], settings: EnvironmentSettings) -> None:
    """Print one line to stderr for each server of `models`; raise if a key would be sent unencrypted."""
    for contact in list_model_endpoints(models, key_hosts=settings.key_hosts):
        silent = "" if is_server_listening(contact.server) else "; nothing listens there now"
        print_message(f"{contact}{silent}")


def print_external_reviewers(
    sections: Iterable[ReviewerSection], settings: EnvironmentSettings
) -> None:
    """Print one line to stderr for each reviewer that is a program to run or a service to contact.

    Raises:
        MachineError: This machine cannot sandbox a program.
        InvalidSettingError: The folder of a program contains other files.
    """
    for section in sections:
        if section.command:
            _print_reviewer_program_notice(section, settings)
        if section.url is not None:
            print_message(_format_endpoint_notice(section.url, section.model, settings))


def _print_reviewer_program_notice(section: ReviewerSection, settings: EnvironmentSettings) -> None:
    what = f"runs {shlex.join(section.command)} as {section.model}"
    if settings.weak_cage:
        print_message(f"{what}, in a weak cage: it can read all that you can read")
        return
    require_program_sandbox()
    readable = [
        "the clip",
        *map(str, find_program_readable_paths(resolve_command_files(section.command, Path()))),
    ]
    graphics = " and use the graphics cards" if section.gpus else ""
    print_message(f"{what}, confined", f"it can read /usr, {', '.join(readable)}{graphics}")


def print_creator_services(
    creators: Iterable[CreatorRecipeSection], settings: EnvironmentSettings
) -> None:
    """Print one line to stderr for each service of `creators`; raise if a key would be sent unencrypted."""
    for creator in creators:
        if isinstance(creator.keys, EndpointCreatorConfig):
            way = creator.keys.contact(settings.key_hosts)
            print_message(
                f"requests clips from {way.server} as {creator.name}, {_format_key_variable(way.variable)}"
            )


def _format_endpoint_notice(url: str, model: str, settings: EnvironmentSettings) -> str:
    server = parse_server_url(url)
    silent = "" if is_server_listening(server) else "; nothing listens there now"
    return f"asks {server} as {model}, {_format_key_variable(find_server_key_variable(server, settings.key_hosts))}{silent}"


def _format_key_variable(variable: str | None) -> str:
    return "without a key" if variable is None else f"with {variable}"


def require_reachable_model(models: Sequence[str], settings: EnvironmentSettings) -> None:
    """Raise an error if no model in `models` can answer because no local server is listening.

    Raises:
        InvalidSettingError: All models are on local servers, and none of the servers listens. The
            message names the first one.
    """
    served = list_model_endpoints(models, key_hosts=settings.key_hosts)
    if all(map(is_server_model, models)) and not any(is_server_listening(c.server) for c in served):
        for contact in served:
            require_server_listening(contact)
