"""Scores of explanations against people's: judged in `trace`, compared in `realism`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from unreel.core.settings import EnvironmentSettings, read_storage
from unreel.core.verdict import RealismVerdict, TraceVerdict
from unreel.engine.resolve_location import local_folder, resolve_location
from unreel.engine.table import LanceTable
from unreel.evaluation.judge import (
    ExplanationPair,
    JudgeAgreement,
    JudgeRulings,
    agreement,
    judge_all,
    read_rulings,
)
from unreel.evaluation.judge_rulings import KeptRulings
from unreel.evaluation.run_job import EvalRun
from unreel.evaluation.scoring import Rows
from unreel.evaluation.similarity import (
    ReasonPair,
    SentenceEncoder,
    compare_reasons,
    join_reasons,
)
from unreel.evaluation.tables import RULINGS
from unreel.protocols.protocol import ScoredQuestion
from unreel.recipes.check import check_sections
from unreel.reviewers.config import ReviewerSection
from unreel.reviewers.endpoint.providers import read_address
from unreel.reviewers.endpoint.reviewer import ModelIOFormat, endpoint_name

BESIDE: Final = ".rulings"
Judge = Callable[[Sequence[ExplanationPair]], JudgeRulings]
"""Gives its rulings on explanations, in order."""


def build_judge(model: str, kept: KeptRulings, *, key_hosts: str) -> Judge:
    """Return a function that sends explanations without a stored ruling in `kept` to a judge model.

    `model` is `provider/name`. `key_hosts` is the setting with the hosts that may receive your own
    key.
    """
    read_address(model)
    section = check_sections(ReviewerSection, {"model": model})
    opener = section.opener(key_hosts=key_hosts)
    return partial(judge_all, opener=opener, kept=kept, in_flight=section.max_connections)


def load_judge_rulings(model: str, run: EvalRun) -> Judge:
    """Return the stored rulings of the judge `provider/name` in `run`; nothing is sent."""
    return partial(
        read_rulings, judge=endpoint_name(model, ModelIOFormat()), kept=open_run_rulings(run)
    )


def open_run_rulings(run: EvalRun) -> KeptRulings:
    """Return the store of the rulings of `run`."""
    return KeptRulings(table=run.rulings, ledgers=run.ledgers)


def open_file_rulings(answers: Path, out: str | None, settings: EnvironmentSettings) -> KeptRulings:
    """Return the store of the rulings on a file of answers.

    The rulings are in the directory or prefix `out`; by default in `ANSWERS.rulings` next to the
    file.
    """
    place = resolve_location(out or f"{answers}{BESIDE}", read_storage(settings))
    table = LanceTable(place / "rulings.lance", RULINGS)
    return KeptRulings(table=table, ledgers=local_folder(place, settings))


@dataclass(slots=True)
class ExplanationJudges:
    """Judges of the explanations of `trace`, with their rulings by condition.

    The first judge scores. A second one gets the same texts, only to measure the agreement.
    """

    judges: Sequence[Judge]
    seed: int
    judgings: list[JudgeRulings] = field(default_factory=list)
    agreements: list[JudgeAgreement] = field(default_factory=list)

    def __call__(self, rows: Rows) -> Rows:
        """Return the rows with a score for each explanation that the first judge could score."""
        asked = [index for index, row in enumerate(rows) if _has_explanation_pair(row)]
        pairs = [_build_explanation_pair(rows[index]) for index in asked]
        first, *others = (judge(pairs) for judge in self.judges)
        self.judgings.append(first)
        self.agreements.extend(agreement(first, other, seed=self.seed) for other in others)
        scores = dict(zip(asked, (judged.score for judged in first.judged), strict=True))
        return [replace(row, text_score=scores.get(i)) for i, row in enumerate(rows)]


@dataclass(slots=True)
class ReasonSimilarity:
    """Fills in the sentence similarity of `realism`; the encoder's name is the checkpoint."""

    encoder: SentenceEncoder

    def __call__(self, rows: Rows) -> Rows:
        """Return the rows with the similarity between the reviewer's reasons and a person's reasons."""
        asked = [i for i, row in enumerate(rows) if isinstance(row.outcome, RealismVerdict)]
        found = compare_reasons([_build_reason_pair(rows[i]) for i in asked], self.encoder)
        scores = dict(zip(asked, (pair.score for pair in found.similarities), strict=True))
        return [replace(row, text_score=scores.get(i)) for i, row in enumerate(rows)]


def _has_explanation_pair(row: ScoredQuestion[Any, Any]) -> bool:
    said = row.outcome
    return (
        isinstance(said, TraceVerdict)
        and isinstance(said.explanation, str)
        and bool(row.truth.explanation)
    )


def _build_explanation_pair(row: ScoredQuestion[Any, Any]) -> ExplanationPair:
    said: Any = row.outcome
    return ExplanationPair(
        clip=str(row.subject), truth=row.truth.explanation, predicted=said.explanation
    )


def _build_reason_pair(row: ScoredQuestion[Any, Any]) -> ReasonPair:
    said: Any = row.outcome
    return ReasonPair(
        clip=str(row.subject),
        truth=join_reasons(row.truth.problem, row.truth.adherence),
        predicted=join_reasons(said.problem, said.adherence),
    )
