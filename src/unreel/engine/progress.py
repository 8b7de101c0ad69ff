"""Progress of a job, and the callbacks that report it."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final


@dataclass(slots=True)
class Progress:
    """Committed rows of this run."""

    done: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    totals: dict[str, float] = field(default_factory=dict)
    """What the job adds up over its rows, by name; absent as long as no row tells, which is not 0."""

    due: int | None = field(default=None, compare=False)
    """Rows of this run, as soon as all its questions are read."""

    note: str = ""
    """What else the last of it says, such as the loss of a step."""

    @property
    def failed(self) -> int:
        """Rows that are failures."""
        return sum(self.failures.values())


OnStep = Callable[[str, Progress], None]
"""Callback after rows of a part were committed, from another thread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCallbacks:
    """Progress callbacks of every kind of job."""

    on_begin: Callable[[str], None] = lambda _title: None
    """Called with the name of the entrant whose turn begins."""
    on_due: Callable[[str, int], None] = lambda _part, _due: None
    """Called with a part and the number of its rows to come; not if that cannot be known in time."""
    on_step: OnStep = lambda _part, _progress: None
    on_phase: Callable[[str], None] = lambda _phase: None
    """Called with the name of the work that begins between two parts."""
    on_note: Callable[[str], None] = lambda _note: None
    """Called with a note for the user about a run that goes on."""
    observe: Callable[[str, int], None] = lambda _step, _rows: None
    """Called with the steps of each commit, by part and name (`answers-written`): for tests that kill a job."""


NO_CALLBACKS: Final = JobCallbacks()
