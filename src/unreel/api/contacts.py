"""Texts about the servers, services and programs that a job will use, and their API keys."""

import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from unreel.catalogue.entries import find_named_checkpoint
from unreel.catalogue.owner_prompts import (
    find_answer_format,
    find_prompt_owner,
    format_prompt_variant,
)
from unreel.core.server_keys import find_server_key_variable, parse_server_url
from unreel.core.settings import EnvironmentSettings
from unreel.creators.config import CreatorRecipeSection
from unreel.creators.endpoint import EndpointCreatorConfig
from unreel.reviewers.config import ReviewerSection
from unreel.reviewers.endpoint.model_address import is_server_model
from unreel.reviewers.endpoint.servers import (
    NOTHING_LEAVES,
    find_local_models,
    is_server_listening,
    list_model_endpoints,
    require_server_listening,
)
from unreel.reviewers.external.detector_program import resolve_command_files
from unreel.reviewers.external.program_sandbox import find_program_readable_paths

if TYPE_CHECKING:
    from unreel.evaluation.recipe import EvalRecipe

_MAX_SHOWN = 3
"""Number of models on this computer for which a command is printed."""


def describe_model_servers(
    models: Sequence[str], settings: EnvironmentSettings, *, tells_prompts: bool = True
) -> Iterator[str]:
    """Yield one line for each server of `models`; raise if a key would be sent unencrypted.

    With `tells_prompts`, another line names each checkpoint that is not asked with its own prompt.
    """
    for contact in list_model_endpoints(models, key_hosts=settings.key_hosts):
        silent = "" if is_server_listening(contact.server) else "; nothing listens there now"
        yield f"{contact}{silent}"
    for entry in filter(None, map(find_named_checkpoint, dict.fromkeys(models))):
        if tells_prompts and entry.prompt is not None and entry.prompt.value is not None:
            yield f"{entry.name} is asked with unreel's prompt, not with its owner's (`unreel models show {entry.name}`)"


def describe_prompts(recipe: "EvalRecipe") -> Iterator[str]:
    """Yield one line for each checkpoint's own prompt of `recipe`, or for one that could be used."""
    name = recipe.reviewer.model.partition("@")[0]
    entry = find_named_checkpoint(recipe.reviewer.model)
    variants = dict.fromkeys(condition.prompt for condition in recipe.conditions)
    for variant in variants:
        owner = find_prompt_owner(variant)
        reference = owner and owner.prompt and owner.prompt.value
        if reference:
            file = f"{reference.path} of {reference.repository}"
            yield f"{name} is asked with its owner's prompt from {file}, SHA-256 {reference.sha256}"
        elif entry is not None and entry.prompt is not None and entry.prompt.value is not None:
            text = f"{name} is asked with unreel's prompt, not with its owner's"
            own = format_prompt_variant(entry)
            if find_answer_format(recipe.protocol, own) is None:
                yield f"{text}, whose answers {recipe.protocol} cannot read"
            elif entry.prompt.setting is not None:
                yield f"{text}: `unreel models get {name}` fetches that"
            else:
                yield f"{text}: use `unreel models get {name}` and --condition prompt={own}"


def describe_local_models(clips: Sequence[Path]) -> Iterator[str]:
    """Yield the command that asks the models on this computer about `clips`, or how to get such a model."""
    models = [model for model in find_local_models() if model.sees_pictures is not False]
    command = f"unreel review {shlex.join(map(str, clips))} --model"
    for model in models[:_MAX_SHOWN]:
        tokens = model.context_tokens
        context = "" if tokens is None else f", context of {tokens} tokens"
        yield f"{command} {model.name}"
        yield f"{NOTHING_LEAVES}{context}"
    if not models:
        yield (
            "No model server runs on this computer. Once Ollama, LM Studio or llama.cpp runs, "
            f"`{command} local` asks its model"
        )


def describe_external_reviewers(
    sections: Iterable[ReviewerSection], settings: EnvironmentSettings
) -> Iterator[str]:
    """Yield one line for each reviewer that is a program to run or a service to contact.

    Raises:
        MachineError: This machine cannot sandbox a program.
        InvalidSettingError: The folder of a program contains other files.
    """
    for section in sections:
        if section.command:
            what = f"runs {shlex.join(section.command)} as {section.model}"
            readable = [
                "the clip",
                *map(
                    str, find_program_readable_paths(resolve_command_files(section.command, Path()))
                ),
            ]
            graphics = " and use the graphics cards" if section.gpus else ""
            yield f"{what}, confined"
            yield f"can read /usr, {', '.join(readable)}{graphics}"
        if section.url is not None:
            server = parse_server_url(section.url)
            silent = "" if is_server_listening(server) else "; nothing listens there now"
            variable = find_server_key_variable(server, settings.key_hosts)
            yield f"asks {server} as {section.model}, {_format_key_variable(variable)}{silent}"


def describe_creator_services(
    creators: Iterable[CreatorRecipeSection], settings: EnvironmentSettings
) -> Iterator[str]:
    """Yield one line for each service of `creators`; raise if a key would be sent unencrypted."""
    for creator in creators:
        if isinstance(creator.keys, EndpointCreatorConfig):
            server, variable = creator.keys.contact(settings.key_hosts)
            yield f"requests clips from {server} as {creator.name}, {_format_key_variable(variable)}"


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
