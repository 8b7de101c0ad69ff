"""Callbacks of a season: start of parts, due work, and results."""

from collections.abc import Callable
from dataclasses import dataclass

from unreel.engine.progress import Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class SeasonCallbacks:
    """Callbacks; the defaults do nothing."""

    on_begin: Callable[[str], None] = lambda _whose: None
    """Told whose turn it is."""
    on_due: Callable[[str, int], None] = lambda _part, _due: None
    on_step: Callable[[str, Progress], None] = lambda _part, _progress: None
    on_phase: Callable[[str], None] = lambda _words: None
    on_note: Callable[[str], None] = lambda _note: None
    observe: Callable[[str, int], None] = lambda _step, _rows: None
    """Told the steps of each commit, for tests that kill a season."""
