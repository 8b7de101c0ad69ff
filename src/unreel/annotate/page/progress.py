"""How far each annotator is, and how fast they go."""

from collections.abc import Iterator
from dataclasses import dataclass

from unreel.annotate.judgements import Quarantined
from unreel.annotate.reading import CampaignRecords
from unreel.core.estimate import Measured
from unreel.core.span import MICROSECONDS
from unreel.stats.bootstrap import bootstrap_mean


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """One annotator."""

    annotator: str
    n_assigned: int
    n_judged: int
    n_unreadable: int
    """What stands of theirs and cannot be read."""
    seconds: Measured
    """Mean time on a task."""
    excluded: str
    """Why nothing of theirs counts; "" where it does."""

    @property
    def share(self) -> float:
        """Of the tasks that they were given, 0 to 1."""
        return self.n_judged / self.n_assigned if self.n_assigned else 0.0


def follow_progress(records: CampaignRecords, *, seed: int) -> Iterator[Progress]:
    """Everybody who was given a task, by name."""
    assigned: dict[str, int] = {}
    for annotator, _ in records.assignments:
        assigned[annotator] = assigned.get(annotator, 0) + 1
    for annotator in sorted(assigned):
        mine = [r for (who, _), r in records.standing.items() if who == annotator]
        read = [r for r in mine if not isinstance(r.outcome, Quarantined)]
        times = [r.lead_us / MICROSECONDS for r in read if r.lead_us is not None]
        notice = records.excluded.get(annotator)
        yield Progress(
            annotator=annotator,
            n_assigned=assigned[annotator],
            n_judged=len(read),
            n_unreadable=len(mine) - len(read),
            seconds=bootstrap_mean(times, seed=seed),
            excluded="" if notice is None else notice.said or "excluded",
        )
