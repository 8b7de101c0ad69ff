"""Tells who is about to be asked, and with which key."""

import shlex
from collections.abc import Iterable, Sequence

from unreel.cli.output import say
from unreel.core.server import key_variable, read_server
from unreel.core.settings import Settings
from unreel.creators.endpoint.section import EndpointKeys
from unreel.creators.section import CreatorSection
from unreel.reviewers.endpoint.keys import contacts
from unreel.reviewers.endpoint.listening import is_listening, require_listening
from unreel.reviewers.endpoint.providers import names_server
from unreel.reviewers.section import ReviewerSection


def tell_contacts(models: Sequence[str], settings: Settings) -> None:
    """One line on stderr for each server behind `models`; a way that shows a key is refused here."""
    for contact in contacts(models, key_hosts=settings.key_hosts):
        silent = "" if is_listening(contact.server) else "; nothing listens there now"
        say(f"{contact}{silent}")


def tell_outsiders(sections: Iterable[ReviewerSection], settings: Settings) -> None:
    """One line on stderr for each program that will run and each service that will be visited."""
    for section in sections:
        if section.command:
            say(f"runs {shlex.join(section.command)} as {section.model}, confined")
        if section.url is not None:
            say(_visits(section.url, section.model, settings))


def tell_services(creators: Iterable[CreatorSection], settings: Settings) -> None:
    """The same for each service that will be asked for clips."""
    for creator in creators:
        if isinstance(creator.keys, EndpointKeys):
            way = creator.keys.contact(settings.key_hosts)
            say(f"asks {way.server} for clips as {creator.name}, {_with(way.variable)}")


def _visits(url: str, model: str, settings: Settings) -> str:
    server = read_server(url)
    silent = "" if is_listening(server) else "; nothing listens there now"
    return f"asks {server} as {model}, {_with(key_variable(server, settings.key_hosts))}{silent}"


def _with(variable: str | None) -> str:
    return "without a key" if variable is None else f"with {variable}"


def require_somebody(models: Sequence[str], settings: Settings) -> None:
    """Refuse where nobody of `models` can answer: all are servers of this machine that do not listen.

    Raises:
        InvalidSettingError: The first of them is told.
    """
    served = contacts(models, key_hosts=settings.key_hosts)
    if all(map(names_server, models)) and not any(is_listening(c.server) for c in served):
        for contact in served:
            require_listening(contact)
