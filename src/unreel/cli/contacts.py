"""Tells who is about to be asked, and with which key."""

from collections.abc import Sequence

from unreel.cli.output import say
from unreel.core.settings import Settings
from unreel.reviewers.endpoint.keys import contacts
from unreel.reviewers.endpoint.listening import is_listening, require_listening
from unreel.reviewers.endpoint.providers import names_server


def tell_contacts(models: Sequence[str], settings: Settings) -> None:
    """One line on stderr for each server behind `models`; a way that shows a key is refused here."""
    for contact in contacts(models, key_hosts=settings.key_hosts):
        silent = "" if is_listening(contact.server) else "; nothing listens there now"
        say(f"{contact}{silent}")


def require_somebody(models: Sequence[str], settings: Settings) -> None:
    """Refuse where nobody of `models` can answer: all are servers of this machine that do not listen.

    Raises:
        InvalidSettingError: The first of them is told.
    """
    served = contacts(models, key_hosts=settings.key_hosts)
    if all(map(names_server, models)) and not any(is_listening(c.server) for c in served):
        for contact in served:
            require_listening(contact)
