"""Tells who is about to be asked, and with which key."""

from collections.abc import Sequence

from unreel.cli.output import say
from unreel.core.settings import Settings
from unreel.reviewers.endpoint.keys import contacts


def tell_contacts(models: Sequence[str], settings: Settings) -> None:
    """One line on stderr for each server behind `models`; a way that shows a key is refused here."""
    for contact in contacts(models, key_hosts=settings.key_hosts):
        say(str(contact))
