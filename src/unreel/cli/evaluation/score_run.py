"""`unreel score RUN`: the stored answers of a run, scored again."""

from collections.abc import Sequence

from unreel.cli.evaluation.score_texts import open_texts, summarise_texts
from unreel.cli.evaluation.scorecard import explain_empty_scorecards, print_scores, score_rows
from unreel.cli.memory_settings import limit_heaps
from unreel.cli.output import Form, format_retry_command, print_json, print_message
from unreel.core.settings import read_settings
from unreel.evaluation.explanation_scores import open_run_rulings
from unreel.evaluation.run_job import EvalRun
from unreel.evaluation.scoring import score_run
from unreel.protocols.protocol import Mode


def score_kept(
    run: EvalRun,
    parser: Mode | None,
    *,
    judges: Sequence[str],
    sts: bool,
    form: Form,
    as_json: bool,
) -> int:
    """Print the scorecards of the run; the status of the command."""
    limit_heaps()
    mode = parser or run.recipe.reviewer.parser
    scorer = open_texts(
        run.recipe.instrument,
        judges,
        sts=sts,
        seed=run.recipe.seed,
        kept=open_run_rulings(run),
        settings=read_settings(),
    )
    scores = score_run(run, mode=mode, score_texts=scorer)
    told = summarise_texts(scorer)
    if as_json:
        print_json({"run": run.place.uri, "scores": score_rows(scores), **told})
    else:
        print_scores(scores, form)
        for what, value in told.items():
            print_message(f"{what}: {value}")
        if any(score.scorecard.failures for score in scores):
            print_message(f"Retry the failures: {format_retry_command(run.place.uri)}")
    if why := explain_empty_scorecards([score.scorecard for score in scores]):
        print_message(why)
    complete = all(s.n_not_asked == 0 and not s.scorecard.failures for s in scores)
    return 0 if complete and not why else 1
