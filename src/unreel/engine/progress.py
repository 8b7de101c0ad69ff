"""Progress of a job."""

from collections import Counter
from dataclasses import dataclass, field


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
