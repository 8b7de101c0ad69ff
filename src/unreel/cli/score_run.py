"""`unreel score RUN`: the stored answers of a run, scored again."""

from collections.abc import Sequence
from typing import Any

from unreel.cli.contacts import tell_contacts
from unreel.cli.output import Form, print_json, say
from unreel.cli.scorecard import print_scores, score_rows
from unreel.core.errors import InvalidSettingError
from unreel.core.settings import read_settings
from unreel.evaluate.finding import open_named_run
from unreel.evaluate.judge import Judging
from unreel.evaluate.scoring import score_run
from unreel.evaluate.similarity import MiniLmEncoder
from unreel.evaluate.texts import ExplanationJudges, ReasonSimilarity, build_judge
from unreel.protocols.protocol import Mode


def score_kept(
    named: str,
    parser: Mode | None,
    *,
    judges: Sequence[str],
    sts: bool,
    form: Form,
    as_json: bool,
) -> int:
    """Print the scorecards of the run in the folder or prefix `named`; the status of the command."""
    settings = read_settings()
    run = open_named_run(named, settings)
    mode = parser or run.recipe.reviewer.parser
    if judges and sts:
        option, remedy = "--sts", "Give --judge for trace, or --sts for realism"
        raise InvalidSettingError(option, "cannot be combined with --judge", remedy)
    told: dict[str, Any] = {}
    if judges:
        tell_contacts(judges, settings)
        asked = [build_judge(model, run, key_hosts=settings.key_hosts) for model in judges]
        by_judge = ExplanationJudges(asked, run.recipe.seed)
        scores = score_run(run, mode=mode, score_texts=by_judge)
        told["judges"] = [_account(judging) for judging in by_judge.judgings]
        told["agreements"] = by_judge.agreements
    elif sts:
        by_reason = ReasonSimilarity(MiniLmEncoder())
        scores = score_run(run, mode=mode, score_texts=by_reason)
        told["checkpoint"] = by_reason.encoder.name
    else:
        scores = score_run(run, mode=mode)
    if as_json:
        print_json({"run": named, "scores": score_rows(scores), **told})
    else:
        print_scores(scores, form)
        for what, value in told.items():
            say(f"{what}: {value}")
    complete = all(s.n_not_asked == 0 and not s.scorecard.failures for s in scores)
    return 0 if complete else 1


def _account(judging: Judging) -> dict[str, object]:
    return {
        "judge": judging.judge,
        "scored": judging.n_scored,
        "unscored": judging.unscored,
        "tokens": judging.tokens,
        "spent": judging.spent,
    }
