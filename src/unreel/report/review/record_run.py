"""Record of a reviewer from a stored run, for the page of a single clip."""

from pathlib import Path

from unreel.core.safe_text import sanitise_line
from unreel.evaluation.run_job import EvalRun
from unreel.evaluation.scoring import score_run
from unreel.protocols.protocol import Mode
from unreel.report.review.record import ReviewerRecord


def read_reviewer_records(run: EvalRun, mode: Mode) -> tuple[ReviewerRecord, ...]:
    """Return the accuracy of the reviewer of `run` for each condition; `mode` is the parser."""
    figures = run.recipe.instrument.figures
    ranking = figures.ranks_by(judged=False)
    sides = [metric for metric in figures.sides if figures[metric].better == "more"]
    told = [figures[metric] for metric in dict.fromkeys([ranking, *sides])]
    return tuple(
        ReviewerRecord(
            reviewer=run.reviewer_name(),
            instrument=run.scope.instrument,
            condition=score.condition,
            benchmark=sanitise_line(Path(run.recipe.benchmark).name),
            figures=tuple((figure, score.scorecard[figure.metric]) for figure in told),
        )
        for score in score_run(run, mode=mode)
    )
