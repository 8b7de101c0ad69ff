"""Check whether a polished text keeps the meaning, as help for the person who confirms the text."""

import re
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from unreel.annotation.polish.inputs import OriginalRationales
from unreel.core.errors import MissingExtraError
from unreel.protocols.realism.prompts import TERMS
from unreel.reviewers.sentence_embeddings import MiniLmEncoder, SentenceEncoder, embed_sentences

LEAST_COSINE: Final = 0.5
LEAST_OVERLAP: Final = 0.5
"""Of the originals' content words."""
LONGEST: Final = 4
"""Times as many words as the originals have; short ones may take 120."""
_SHORT: Final = 120
_PARTS: Final = ("problem description", "standard adherence", "conclusion")
_CONCLUSION: Final = re.compile(r"conclusion\W+(.*)", re.IGNORECASE | re.DOTALL)
_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?")
_NEGATION: Final = re.compile(
    r"\b(?:no|not|never|without|none|cannot|\w+n['\u2019]t)\b", re.IGNORECASE
)
_WORD: Final = re.compile(r"[^\W\d_]{4,}")


class PolishFlag(StrEnum):
    """Reason for a close look by a person. The values are stored: add, never rename."""

    SCORE = "score"
    """Its conclusion is another score's word, or none."""
    STRUCTURE = "structure"
    """A part is missing."""
    NUMBERS = "numbers"
    """It contains a number that is in no original, or omits one."""
    NEGATION = "negation"
    """It adds or omits a negation."""
    SIMILARITY = "similarity"
    LENGTH = "length"


@dataclass(frozen=True, slots=True, kw_only=True)
class PolishCheck:
    """Result of the check."""

    flags: tuple[PolishFlag, ...]
    similarity: float | None
    """Similarity to the texts about problems, or about the rubric, whichever is lower; `None`
    without texts.
    """
    by: str
    """What measured it: a checkpoint, or `overlap`."""


def open_encoder() -> SentenceEncoder | None:
    """Load the sentence encoder of the extra `sts`; return `None` if it is not installed."""
    try:
        return MiniLmEncoder()
    except MissingExtraError:
        return None


def check(
    original: OriginalRationales, polished: str, *, encoder: SentenceEncoder | None
) -> PolishCheck:
    """Compare a polished text with what people wrote."""
    parts = ("\n".join(part) for part in (original.problems, original.adherences) if part)
    measured = [_compute_text_similarity(part, polished, encoder) for part in parts]
    similarity = min((each for each in measured if each is not None), default=None)
    least = LEAST_OVERLAP if encoder is None else LEAST_COSINE
    found = {
        PolishFlag.SCORE: _extract_conclusion_term(polished) != TERMS[original.score - 1].lower(),
        PolishFlag.STRUCTURE: not all(part in polished.lower() for part in _PARTS),
        PolishFlag.NUMBERS: bool(original.text)
        and _extract_numbers(original.text) != _extract_numbers(polished),
        PolishFlag.NEGATION: bool(original.text)
        and _has_negation(original.text) != _has_negation(_remove_conclusion(polished)),
        PolishFlag.SIMILARITY: similarity is not None and similarity < least,
        PolishFlag.LENGTH: len(polished.split())
        > max(_SHORT, LONGEST * len(original.text.split())),
    }
    flags = tuple(flag for flag, is_found in found.items() if is_found)
    return PolishCheck(
        flags=flags, similarity=similarity, by=encoder.name if encoder else "overlap"
    )


def _extract_conclusion_term(polished: str) -> str:
    """Return the only word of the scale in the conclusion; "" if there is none, or several."""
    found = _CONCLUSION.search(polished)
    words = {word.lower() for word in re.findall(r"\w+", found[1])} if found else set()
    terms = [term.lower() for term in TERMS if term.lower() in words]
    return terms[0] if len(terms) == 1 else ""


def _remove_conclusion(polished: str) -> str:
    return _CONCLUSION.sub("", polished)


def _extract_numbers(text: str) -> set[str]:
    return set(_NUMBER.findall(text))


def _has_negation(text: str) -> bool:
    return bool(_NEGATION.search(text))


def _compute_text_similarity(
    original: str, polished: str, encoder: SentenceEncoder | None
) -> float | None:
    if encoder is None:
        wrote, kept = (Counter(_extract_word_stems(text)) for text in (original, polished))
        return sum((wrote & kept).values()) / max(sum(wrote.values()), 1) if wrote else None
    one, other = embed_sentences([original, polished], encoder)
    return None if one is None or other is None else float(one @ other)


def _extract_word_stems(text: str) -> set[str]:
    """Return the first five letters of each word of four or more letters, to ignore word endings."""
    return {word[:5] for word in _WORD.findall(text.lower())}
