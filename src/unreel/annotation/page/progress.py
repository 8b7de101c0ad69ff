"""Progress and speed of each annotator."""

from collections.abc import Iterator
from dataclasses import dataclass

from unreel.annotation.progress import tally_people
from unreel.annotation.reading import CampaignRecords
from unreel.core.estimate import Measured
from unreel.stats.bootstrap import bootstrap_mean


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotatorPageRow:
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


def follow_progress(records: CampaignRecords, *, seed: int) -> Iterator[AnnotatorPageRow]:
    """Everybody who was given a task, by name."""
    for annotator, own in tally_people(records).items():
        notice = records.excluded.get(annotator)
        yield AnnotatorPageRow(
            annotator=annotator,
            n_assigned=own.given,
            n_judged=own.done,
            n_unreadable=own.quarantined,
            seconds=bootstrap_mean(own.spent_s, seed=seed),
            excluded="" if notice is None else notice.said or "excluded",
        )
