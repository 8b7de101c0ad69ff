"""`--protocol`: an instrument by its name, ours or one that another package brings."""

import click

from unreel.protocols.protocol import PROTOCOLS, Subject, protocol, protocol_names


class InstrumentName(click.Choice[str]):
    """Parameter type of a protocol; other packages are searched only for the complete list of names.

    Args:
        subject: Required subject of the protocol; any by default.
    """

    def __init__(self, subject: Subject | None = None) -> None:
        self._subject = subject
        self.case_sensitive = True

    @property
    def choices(self) -> tuple[str, ...]:  # type: ignore[override]
        """All names that can be typed."""
        return protocol_names(self._subject)

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        ours = value in PROTOCOLS.entries
        if ours and self._subject in {None, protocol(value).subject}:
            return value
        return super().convert(value, param, ctx)
