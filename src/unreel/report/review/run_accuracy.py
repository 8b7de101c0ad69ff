"""Accuracy of a reviewer, computed from a stored run."""

from pathlib import Path

from unreel.core.safe_text import sanitise_line
from unreel.evaluation.run_job import EvalRun
from unreel.evaluation.scoring import score_run
from unreel.protocols.protocol import Mode
from unreel.report.review.reviewer_accuracy import ReviewerAccuracyRecord


def read_reviewer_records(run: EvalRun, mode: Mode) -> tuple[ReviewerAccuracyRecord, ...]:
    """Compute the accuracy of the run's reviewer for each condition; `mode` is the answer parser."""
    figures = run.recipe.instrument.figures
    ranking = figures.ranks_by(judged=False)
    sides = [metric for metric in figures.sides if figures[metric].better == "more"]
    told = [figures[metric] for metric in dict.fromkeys([ranking, *sides])]
    return tuple(
        ReviewerAccuracyRecord(
            reviewer=run.reviewer_name(),
            instrument=run.scope.instrument,
            condition=score.condition,
            benchmark=sanitise_line(Path(run.recipe.benchmark).name),
            figures=tuple((figure, score.scorecard[figure.metric]) for figure in told),
        )
        for score in score_run(run, mode=mode)
    )
