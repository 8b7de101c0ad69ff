"""Formatting of figures for the commands of a season."""

from unreel.core.estimate import Estimate, Measured


def spell(found: Measured | None, places: int) -> str:
    """A value with its interval; "" where nothing was measured."""
    if not isinstance(found, Estimate):
        return ""
    return f"{found.value:.{places}f} [{found.low:.{places}f}, {found.high:.{places}f}]"
