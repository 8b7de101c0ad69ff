"""Scores of explanations against people's: by a judge in `trace`, by similarity in `realism`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from unreel.core.settings import EnvironmentSettings, read_storage_options
from unreel.core.verdict import RealismVerdict, TraceVerdict, Unparsed
from unreel.engine.location import get_local_state_folder, resolve_location
from unreel.engine.table import LanceTable
from unreel.evaluation.judge import (
    RULINGS,
    ExplanationPair,
    JudgeAgreement,
    JudgeRulings,
    JudgeRulingStore,
    compute_judge_agreement,
    judge_explanations,
    read_stored_rulings,
)
from unreel.evaluation.run_job import EvalRun
from unreel.evaluation.scoring import Rows
from unreel.protocols.protocol import ScoredQuestion
from unreel.recipes.validation import validate_recipe_sections
from unreel.reviewers.config import ReviewerSection
from unreel.reviewers.endpoint.model_address import parse_model_address
from unreel.reviewers.endpoint.reviewer import ModelIOFormat, format_endpoint_model_name
from unreel.reviewers.sentence_embeddings import MiniLmEncoder, SentenceEncoder, embed_sentences

__all__ = [
    "MiniLmEncoder",
    "ReasonCosine",
    "ReasonCosines",
    "ReasonPair",
    "SentenceEncoder",
    "compare_reasons",
    "join_reasons",
]

NO_TRUTH, NO_PREDICTION, NO_DIRECTION = "no-truth", "no-prediction", "no-direction"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasonPair:
    """Reasons for the realism score of one clip: those of a person and those of a reviewer."""

    clip: str
    truth: str
    predicted: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasonCosine:
    """Cosine similarity of one pair of reasons, from -1 to 1, or why there is none."""

    clip: str
    score: float | None
    """Cosine similarity; `None`, never 0, if a text is missing or its vector has no direction."""
    why: str = ""
    """Countable reason for a missing score, such as `no-truth`; empty if there is a score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasonCosines:
    """Cosine similarities of all pairs of reasons, in order, and the name of the encoder's checkpoint."""

    checkpoint: str
    similarities: tuple[ReasonCosine, ...]


def join_reasons(problem: str | Unparsed, adherence: str | Unparsed) -> str:
    """Join problem description and standard adherence to one text; empty if both are missing."""
    parts = (part.strip() for part in (problem, adherence) if isinstance(part, str))
    return " ".join(part for part in parts if part)


def compare_reasons(reasoned: Sequence[ReasonPair], encoder: SentenceEncoder) -> ReasonCosines:
    """Compute the cosine similarity of each pair of reasons, in order; each text is encoded once."""
    pairs = [pair for pair in reasoned if not _explain_missing_text(pair)]
    texts = list(dict.fromkeys(text for pair in pairs for text in (pair.truth, pair.predicted)))
    vectors = dict(zip(texts, embed_sentences(texts, encoder), strict=True))
    return ReasonCosines(
        checkpoint=encoder.name,
        similarities=tuple(_compute_reason_cosine(pair, vectors) for pair in reasoned),
    )


def _compute_reason_cosine(
    pair: ReasonPair, vectors: Mapping[str, npt.NDArray[np.float64] | None]
) -> ReasonCosine:
    reason = _explain_missing_text(pair)
    if reason:
        return ReasonCosine(clip=pair.clip, score=None, why=reason)
    truth, predicted = vectors[pair.truth], vectors[pair.predicted]
    if truth is None or predicted is None:
        return ReasonCosine(clip=pair.clip, score=None, why=NO_DIRECTION)
    # Rounding can give a cosine slightly above 1.
    return ReasonCosine(clip=pair.clip, score=float(np.clip(truth @ predicted, -1.0, 1.0)))


def _explain_missing_text(pair: ReasonPair) -> str:
    if not pair.truth.strip():
        return NO_TRUTH
    return "" if pair.predicted.strip() else NO_PREDICTION


BESIDE = ".rulings"
Judge = Callable[[Sequence[ExplanationPair]], JudgeRulings]
"""Function that returns rulings on explanations, in order."""


def build_explanation_judge(model: str, store: JudgeRulingStore, *, key_hosts: str) -> Judge:
    """Return a function that gets the rulings of a judge model on explanations.

    Only explanations without a stored ruling in `store` are sent. `model` is `provider/name`.
    `key_hosts` is the setting with the hosts that may receive your own key.
    """
    parse_model_address(model)
    section = validate_recipe_sections(ReviewerSection, {"model": model})
    factory = section.opener(key_hosts=key_hosts)
    return partial(
        judge_explanations, factory=factory, store=store, in_flight=section.max_connections
    )


def build_stored_rulings_judge(model: str, run: EvalRun) -> Judge:
    """Return a function that reads the stored rulings of judge `model` in `run`; it sends nothing."""
    return partial(
        read_stored_rulings,
        judge=format_endpoint_model_name(model, ModelIOFormat()),
        store=open_run_rulings(run),
    )


def open_run_rulings(run: EvalRun) -> JudgeRulingStore:
    """Return the store of the judges' rulings on the explanations in `run`."""
    return JudgeRulingStore(table=run.rulings, ledgers=run.ledgers)


def open_answer_file_rulings(
    answers: Path, out: str | None, settings: EnvironmentSettings
) -> JudgeRulingStore:
    """Return the rulings' store at `out`, by default `ANSWERS.rulings` next to the answers file."""
    location = resolve_location(out or f"{answers}{BESIDE}", read_storage_options(settings))
    table = LanceTable(location / "rulings.lance", RULINGS)
    return JudgeRulingStore(table=table, ledgers=get_local_state_folder(location, settings))


@dataclass(slots=True)
class ExplanationJudges:
    """Judges of explanations with rulings by condition; the first scores, a second measures agreement."""

    judges: Sequence[Judge]
    seed: int
    judgings: list[JudgeRulings] = field(default_factory=list)
    agreements: list[JudgeAgreement] = field(default_factory=list)

    def __call__(self, rows: Rows) -> Rows:
        """Return the rows with a score for each explanation that the first judge could score."""
        indices = [index for index, row in enumerate(rows) if _has_explanation_pair(row)]
        pairs = [_build_explanation_pair(rows[index]) for index in indices]
        first, *others = (judge(pairs) for judge in self.judges)
        self.judgings.append(first)
        self.agreements.extend(
            compute_judge_agreement(first, second, seed=self.seed) for second in others
        )
        scores = dict(zip(indices, (ruling.score for ruling in first.judged), strict=True))
        return [replace(row, text_score=scores.get(i)) for i, row in enumerate(rows)]


@dataclass(slots=True)
class ReasonSimilarityScorer:
    """Scorer of the reasons in `realism` answers, by their sentence similarity to a person's reasons."""

    encoder: SentenceEncoder

    def __call__(self, rows: Rows) -> Rows:
        """Return the rows with the similarity between the reviewer's reasons and a person's reasons."""
        indices = [i for i, row in enumerate(rows) if isinstance(row.outcome, RealismVerdict)]
        comparison = compare_reasons([_build_reason_pair(rows[i]) for i in indices], self.encoder)
        scores = dict(zip(indices, (pair.score for pair in comparison.similarities), strict=True))
        return [replace(row, text_score=scores.get(i)) for i, row in enumerate(rows)]


def _has_explanation_pair(row: ScoredQuestion[Any, Any]) -> bool:
    verdict = row.outcome
    return (
        isinstance(verdict, TraceVerdict)
        and isinstance(verdict.explanation, str)
        and bool(row.truth.explanation)
    )


def _build_explanation_pair(row: ScoredQuestion[Any, Any]) -> ExplanationPair:
    verdict: Any = row.outcome
    return ExplanationPair(
        clip=str(row.subject), truth=row.truth.explanation, predicted=verdict.explanation
    )


def _build_reason_pair(row: ScoredQuestion[Any, Any]) -> ReasonPair:
    verdict: Any = row.outcome
    return ReasonPair(
        clip=str(row.subject),
        truth=join_reasons(row.truth.problem, row.truth.adherence),
        predicted=join_reasons(verdict.problem, verdict.adherence),
    )
