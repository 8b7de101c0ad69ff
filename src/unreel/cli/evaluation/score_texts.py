"""`unreel score --judge` and `--sts`: score explanations of a run or file against human texts."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from unreel.cli.contacted_services import print_endpoints
from unreel.core.errors import InvalidSettingError
from unreel.core.settings import EnvironmentSettings, read_settings
from unreel.evaluation.explanation_scores import (
    ExplanationJudges,
    ReasonSimilarity,
    build_judge,
    open_file_rulings,
)
from unreel.evaluation.judge import JudgeRulings
from unreel.evaluation.judge_rulings import KeptRulings
from unreel.evaluation.scoring import Rows
from unreel.evaluation.similarity import MiniLmEncoder
from unreel.protocols.protocol import Protocol

TextScorer = ExplanationJudges | ReasonSimilarity


def open_texts(
    instrument: Protocol[Any, Any],
    judges: Sequence[str],
    *,
    sts: bool,
    seed: int,
    kept: KeptRulings,
    settings: EnvironmentSettings,
) -> TextScorer | None:
    """Return the scorer of explanations; `None` if no judge is named. Judges are announced on stderr."""
    if judges and sts:
        option, remedy = "--sts", "Give --judge for trace, or --sts for realism"
        raise InvalidSettingError(option, "cannot be combined with --judge", remedy)
    for option, is_given, figure in (("--judge", judges, "explanation"), ("--sts", sts, "sts")):
        if is_given and figure not in instrument.figures:
            problem = f"{instrument.instrument.protocol} has no figure that it scores"
            raise InvalidSettingError(option, problem, "Leave it out")
    if sts:
        return ReasonSimilarity(MiniLmEncoder())
    if not judges:
        return None
    print_endpoints(judges, settings)
    asked = [build_judge(model, kept, key_hosts=settings.key_hosts) for model in judges]
    return ExplanationJudges(asked, seed)


def summarise_texts(scorer: TextScorer | None) -> dict[str, Any]:
    """Return the summary of scored explanations."""
    match scorer:
        case ExplanationJudges(judgings=judgings, agreements=agreements):
            return {
                "judges": [_build_judging_summary(each) for each in judgings],
                "agreements": agreements,
            }
        case ReasonSimilarity(encoder=encoder):
            return {"checkpoint": encoder.name}
        case None:
            return {}


def score_words(  # noqa: PLR0913  what a file's words are scored by
    rows: Rows,
    instrument: Protocol[Any, Any],
    judges: Sequence[str],
    *,
    sts: bool,
    seed: int,
    file: Path,
    out: str | None,
) -> tuple[Rows, dict[str, Any]]:
    """Return the rows of a file of answers with the scores of their texts, and messages about them."""
    settings = read_settings()
    kept = open_file_rulings(file, out, settings)
    scorer = open_texts(instrument, judges, sts=sts, seed=seed, kept=kept, settings=settings)
    return (rows if scorer is None else scorer(rows)), summarise_texts(scorer)


def _build_judging_summary(judging: JudgeRulings) -> dict[str, object]:
    return {
        "judge": judging.judge,
        "scored": judging.n_scored,
        "unscored": judging.unscored,
        "tokens": judging.tokens,
        "spent": judging.spent,
    }
