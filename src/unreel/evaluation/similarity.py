"""Similarity of a reviewer's reasons to a person's: the cosine of their sentence embeddings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unreel.core.verdict import Unparsed
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
    """A person's reasons for the score of one clip, and a reviewer's: see `join_reasons`."""

    clip: str
    truth: str
    predicted: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasonCosine:
    """A cosine from -1 to 1, or the reason why there is none."""

    clip: str
    score: float | None
    """`None` where there was nothing to compare, which is never 0."""
    why: str = ""
    """Empty with a score; otherwise a countable reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasonCosines:
    """All cosines, in the order of the reasons, and the checkpoint that they belong to."""

    checkpoint: str
    similarities: tuple[ReasonCosine, ...]


def join_reasons(problem: str | Unparsed, adherence: str | Unparsed) -> str:
    """Return problem description and standard adherence as one text; empty if both are missing."""
    parts = (part.strip() for part in (problem, adherence) if isinstance(part, str))
    return " ".join(part for part in parts if part)


def compare_reasons(reasoned: Sequence[ReasonPair], encoder: SentenceEncoder) -> ReasonCosines:
    """Compute the cosine of each pair of reasons, in order; each text is encoded once."""
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
    why = _explain_missing_text(pair)
    if why:
        return ReasonCosine(clip=pair.clip, score=None, why=why)
    truth, predicted = vectors[pair.truth], vectors[pair.predicted]
    if truth is None or predicted is None:
        return ReasonCosine(clip=pair.clip, score=None, why=NO_DIRECTION)
    # Rounding may carry a cosine past 1 by a hair.
    return ReasonCosine(clip=pair.clip, score=float(np.clip(truth @ predicted, -1.0, 1.0)))


def _explain_missing_text(pair: ReasonPair) -> str:
    if not pair.truth.strip():
        return NO_TRUTH
    return "" if pair.predicted.strip() else NO_PREDICTION
