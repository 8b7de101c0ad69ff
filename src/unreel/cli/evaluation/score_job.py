"""Implementation of `unreel score RUN`, `--judge` and `--sts`, imported when they run."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from unreel.api.contacts import describe_model_servers
from unreel.cli.evaluation.scorecard_output import (
    build_condition_scorecard_rows,
    explain_empty_scorecards,
    print_condition_scorecards,
)
from unreel.cli.output import Form, format_retry_command, print_json, print_message
from unreel.cli.process_signals import limit_malloc_arenas
from unreel.core.errors import InvalidSettingError
from unreel.core.settings import EnvironmentSettings, read_environment_settings
from unreel.evaluation.explanation_scores import (
    ExplanationJudges,
    MiniLmEncoder,
    ReasonSimilarityScorer,
    build_explanation_judge,
    open_answer_file_rulings,
    open_run_rulings,
)
from unreel.evaluation.judge import JudgeRulingStore
from unreel.evaluation.run_job import EvalRun
from unreel.evaluation.scoring import Rows, score_run
from unreel.protocols.protocol import Mode, Protocol

TextScorer = ExplanationJudges | ReasonSimilarityScorer


def open_explanation_scorer(
    instrument: Protocol[Any, Any],
    judges: Sequence[str],
    *,
    sts: bool,
    seed: int,
    store: JudgeRulingStore,
    settings: EnvironmentSettings,
) -> TextScorer | None:
    """Return the scorer by `judges`, whose servers are printed, or by `sts`; `None` without both."""
    if judges and sts:
        raise InvalidSettingError(
            "--sts",
            "cannot be combined with --judge",
            "Give --judge for trace, or --sts for realism",
        )
    for option, is_given, metric in (("--judge", judges, "explanation"), ("--sts", sts, "sts")):
        if is_given and metric not in instrument.figures:
            raise InvalidSettingError(
                option,
                f"{instrument.instrument.protocol} has no figure that it scores",
                "Leave it out",
            )
    if sts:
        return ReasonSimilarityScorer(MiniLmEncoder())
    if not judges:
        return None
    print_message(*describe_model_servers(judges, settings))
    functions = [build_explanation_judge(m, store, key_hosts=settings.key_hosts) for m in judges]
    return ExplanationJudges(functions, seed)


def summarise_explanation_scores(scorer: TextScorer | None) -> dict[str, Any]:
    """Return a JSON summary of how explanations were scored; empty if they were not scored."""
    match scorer:
        case ExplanationJudges(judgings=judgings, agreements=agreements):
            return {
                "judges": [
                    {
                        "judge": judging.judge,
                        "scored": judging.n_scored,
                        "unscored": judging.unscored,
                        "tokens": judging.tokens,
                        "spent": judging.spent,
                    }
                    for judging in judgings
                ],
                "agreements": agreements,
            }
        case ReasonSimilarityScorer(encoder=encoder):
            return {"checkpoint": encoder.name}
        case None:
            return {}


def score_answer_file_explanations(
    rows: Rows,
    instrument: Protocol[Any, Any],
    judges: Sequence[str],
    *,
    sts: bool,
    seed: int,
    file: Path,
    out: str | None,
) -> tuple[Rows, dict[str, Any]]:
    """Score the explanations of an answer file; return its rows with the scores, and a summary."""
    settings = read_environment_settings()
    store = open_answer_file_rulings(file, out, settings)
    scorer = open_explanation_scorer(
        instrument, judges, sts=sts, seed=seed, store=store, settings=settings
    )
    return (rows if scorer is None else scorer(rows)), summarise_explanation_scores(scorer)


def score_stored_run(
    run: EvalRun,
    parser: Mode | None,
    *,
    judges: Sequence[str],
    sts: bool,
    form: Form,
    as_json: bool,
) -> int:
    """Score the stored answers of the run and print its scorecards; return the exit status."""
    limit_malloc_arenas()
    mode = parser or run.recipe.reviewer.parser
    scorer = open_explanation_scorer(
        run.recipe.instrument,
        judges,
        sts=sts,
        seed=run.recipe.seed,
        store=open_run_rulings(run),
        settings=read_environment_settings(),
    )
    scores = score_run(run, mode=mode, score_texts=scorer)
    more = summarise_explanation_scores(scorer)
    if as_json:
        print_json({"run": run.place.uri, "scores": build_condition_scorecard_rows(scores), **more})
    else:
        print_condition_scorecards(scores, form)
        for what, value in more.items():
            print_message(f"{what}: {value}")
        if any(score.scorecard.failures for score in scores):
            print_message(f"Retry the failures: {format_retry_command(run.place.uri)}")
    if reason := explain_empty_scorecards([score.scorecard for score in scores]):
        print_message(reason)
    complete = all(s.n_not_asked == 0 and not s.scorecard.failures for s in scores)
    return 0 if complete and not reason else 1
