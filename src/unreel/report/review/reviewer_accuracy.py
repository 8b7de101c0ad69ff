"""Accuracy of a reviewer in earlier runs over benchmarks with ground truth, for a review's page."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from unreel.core.estimate import Measured, Unmeasured
from unreel.core.question import Condition, Instrument
from unreel.core.safe_text import sanitise_line
from unreel.evaluation.opinion import Opinion
from unreel.protocols.metric_definitions import MetricDefinition
from unreel.protocols.protocol import Mode

if TYPE_CHECKING:  # not needed for a review without runs
    from unreel.evaluation.run_job import EvalRun

UNKNOWN: Final = "not known"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewerAccuracyRecord:
    """Measured accuracy of a reviewer in one run under one condition, overall and by label."""

    reviewer: str
    instrument: Instrument
    condition: Condition
    benchmark: str
    figures: tuple[tuple[MetricDefinition, Measured], ...]

    def __str__(self) -> str:
        metrics = [_format_metric(figure, value) for figure, value in self.figures]
        meaning = self.figures[0][0].meaning
        return f"{'; '.join(metrics)}. On {self.benchmark}; {self.figures[0][0].title}: {meaning}"


def select_matching_records(
    opinion: Opinion, records: Sequence[ReviewerAccuracyRecord]
) -> tuple[ReviewerAccuracyRecord, ...]:
    """Select the accuracy records with the reviewer, protocol and condition of `opinion`."""
    question = opinion.question
    key = (opinion.reviewer, question.instrument, question.condition)
    return tuple(r for r in records if (r.reviewer, r.instrument, r.condition) == key)


def _format_metric(figure: MetricDefinition, value: Measured) -> str:
    if isinstance(value, Unmeasured):
        return f"{figure.title} not known ({value.why})"
    unit = f" {figure.unit}" if figure.unit else ""
    point, low, high = (f"{n:.{figure.places}f}" for n in (value.value, value.low, value.high))
    doubt = f"{value.level:.0%} interval {low} to {high}, n = {value.n}"
    return f"{figure.title} {point}{unit} ({doubt})"


def format_reviewer_accuracy(opinion: Opinion, records: Sequence[ReviewerAccuracyRecord]) -> str:
    """Return as text the accuracy of the opinion's reviewer in runs with this question and condition."""
    own = [record for record in records if record.reviewer == opinion.reviewer]
    alike = [record for record in own if record.instrument == opinion.question.instrument]
    if matching := select_matching_records(opinion, records):
        return "; ".join(dict.fromkeys(map(str, matching)))
    if alike:
        conditions = ", ".join(dict.fromkeys(str(record.condition) for record in alike))
        return f"{UNKNOWN} for this condition; the given runs have {conditions}"
    if own:
        return f"{UNKNOWN} for this question; the given runs have other questions"
    return f"{UNKNOWN}: it is in none of the given runs" if records else UNKNOWN


def read_reviewer_records(run: "EvalRun", mode: Mode) -> tuple[ReviewerAccuracyRecord, ...]:
    """Compute the accuracy of the run's reviewer for each condition; `mode` is the answer parser."""
    from unreel.evaluation.scoring import score_run

    figures = run.recipe.instrument.figures
    ranking = figures.ranks_by(judged=False)
    sides = [metric for metric in figures.sides if figures[metric].better == "more"]
    metrics = [figures[metric] for metric in dict.fromkeys([ranking, *sides])]
    return tuple(
        ReviewerAccuracyRecord(
            reviewer=run.reviewer_name(),
            instrument=run.scope.instrument,
            condition=score.condition,
            benchmark=sanitise_line(Path(run.recipe.benchmark).name),
            figures=tuple((figure, score.scorecard[figure.metric]) for figure in metrics),
        )
        for score in score_run(run, mode=mode)
    )
