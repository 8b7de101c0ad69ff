"""Polishing of annotators' rationales by a language model, and check that the meaning is kept."""

import asyncio
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib.resources import files
from typing import Final

from unreel.annotation.campaign import AnnotationInterface
from unreel.annotation.campaign_consensus import compute_campaign_consensus
from unreel.annotation.campaign_state import CampaignRecords, iter_valid_judgements
from unreel.annotation.consensus.outcome import ConsensusRule, SettledTask
from unreel.annotation.judgements import RatingAnswer
from unreel.core.content_ids import digest
from unreel.core.errors import InvalidSettingError, MissingExtraError
from unreel.core.failure import Failure, FailureReason
from unreel.core.judgement import Rating
from unreel.core.question import Condition, Instrument
from unreel.protocols.answer_text import strip_thinking
from unreel.protocols.realism.prompts import TERMS
from unreel.reviewers.contract import Reviewer, ReviewRequest
from unreel.reviewers.factory import ReviewerFactory
from unreel.reviewers.sentence_embeddings import MiniLmEncoder, SentenceEncoder, embed_sentences


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginalRationales:
    """Annotators' rationales for the consensus score of one clip."""

    task: str
    """Identifier of the task."""
    name: str
    score: int
    problems: tuple[str, ...]
    adherences: tuple[str, ...]

    @property
    def key(self) -> str:
        """Return a hash of prompt, score and rationales; if it changes, the rationales are polished again."""
        parts = (str(self.score), *self.problems, "", *self.adherences)
        return digest("polish", read_polish_prompt(), *parts)[:24]

    @property
    def text(self) -> str:
        """Return all rationales as one text, one per line."""
        return "\n".join((*self.problems, *self.adherences))


def read_polish_prompt() -> str:
    """Read VideoRealBench's original prompt for polishing."""
    return files(__package__).joinpath("vrb-polish.txt").read_text(encoding="utf-8")


def build_polish_prompt(original: OriginalRationales) -> str:
    """Build the prompt that asks a model to merge rationales; they are separated by ` | `."""
    return (
        f"{read_polish_prompt().rstrip()}\n\n<Score>: {original.score}\n"
        f"<Problem Description>: {_join_rationale_texts(original.problems)}\n"
        f"<Standard Adherence>: {_join_rationale_texts(original.adherences)}\n"
    )


def iter_original_rationales(
    records: CampaignRecords, rule: ConsensusRule
) -> Iterator[OriginalRationales]:
    """Yield the annotators' rationales of each clip with a consensus score, in the order of the tasks.

    They are those of all annotators who gave the consensus score. If no annotator gave it, it is
    the rationale that the consensus chose.

    Raises:
        InvalidSettingError: The campaign does not ask for scores.
    """
    if records.campaign.interface is not AnnotationInterface.REALISM:
        setting, problem = "CAMPAIGN", f"{records.campaign.name} asks for no scores and rationales"
        raise InvalidSettingError(setting, problem, "Name a campaign of --interface realism")
    consensus = compute_campaign_consensus(records, rule)
    ratings: dict[str, list[Rating]] = {}
    for opinion in iter_valid_judgements(records):
        if isinstance(opinion.value, RatingAnswer) and opinion.value.rating is not None:
            ratings.setdefault(opinion.task.id, []).append(opinion.value.rating)
    yield from _iter_settled_rationales(records, consensus.tasks, ratings)


def _iter_settled_rationales(
    records: CampaignRecords, outcomes: Mapping[str, object], ratings: Mapping[str, list[Rating]]
) -> Iterator[OriginalRationales]:
    for id_, task in records.tasks.items():
        outcome = outcomes.get(id_)
        if not isinstance(outcome, SettledTask) or not isinstance(outcome.value, RatingAnswer):
            continue
        if (standing := outcome.value.rating) is None:
            continue
        same = [rating for rating in ratings.get(id_, []) if rating.score == standing.score]
        merged = same or [standing]
        yield OriginalRationales(
            task=id_,
            name=task.names[0],
            score=standing.score,
            problems=_remove_duplicate_texts(rating.problem for rating in merged),
            adherences=_remove_duplicate_texts(rating.adherence for rating in merged),
        )


def _remove_duplicate_texts(texts: Iterator[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text.strip() for text in texts if text.strip()))


def _join_rationale_texts(texts: tuple[str, ...]) -> str:
    return " | ".join(" ".join(text.split()) for text in texts) or "(none)"


LEAST_COSINE: Final = 0.5
LEAST_OVERLAP: Final = 0.5
"""Minimum fraction of the originals' content words in the polished text."""
LONGEST: Final = 4
"""Maximum length as a multiple of the originals' number of words; 120 words are always allowed."""
_SHORT: Final = 120
_PARTS: Final = ("problem description", "standard adherence", "conclusion")
_CONCLUSION: Final = re.compile(r"conclusion\W+(.*)", re.IGNORECASE | re.DOTALL)
_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?")
_NEGATION: Final = re.compile(
    r"\b(?:no|not|never|without|none|cannot|\w+n['\u2019]t)\b", re.IGNORECASE
)
_WORD: Final = re.compile(r"[^\W\d_]{4,}")


class PolishedTextFlag(StrEnum):
    """Reason why a person should check a polished text. The values are stored: add, never rename."""

    SCORE = "score"
    """Conclusion that names another score, or none."""
    STRUCTURE = "structure"
    """Missing part of the text."""
    NUMBERS = "numbers"
    """Number that is in no original, or omission of a number."""
    NEGATION = "negation"
    """Added or omitted negation."""
    SIMILARITY = "similarity"
    LENGTH = "length"


@dataclass(frozen=True, slots=True, kw_only=True)
class PolishedTextCheck:
    """Result of checking a polished text: flags, and similarity to the original rationales."""

    flags: tuple[PolishedTextFlag, ...]
    similarity: float | None
    """Lower of the similarities to the problem descriptions and to the standard adherences; `None`
    without such texts.
    """
    by: str
    """Method that measured the similarity: name of a checkpoint, or `overlap`."""


def load_sentence_encoder() -> SentenceEncoder | None:
    """Load the sentence encoder of the extra `sts`; return `None` if it is not installed."""
    try:
        return MiniLmEncoder()
    except MissingExtraError:
        return None


def check_polished_text(
    original: OriginalRationales, polished: str, *, encoder: SentenceEncoder | None
) -> PolishedTextCheck:
    """Compare a polished text with the original rationales; return flags and similarity.

    Args:
        original: Rationales of the annotators.
        polished: Text by the language model.
        encoder: Sentence encoder for the similarity; None compares word stems.
    """
    parts = ("\n".join(part) for part in (original.problems, original.adherences) if part)
    measured = [_compute_text_similarity(part, polished, encoder) for part in parts]
    similarity = min((s for s in measured if s is not None), default=None)
    min_similarity = LEAST_OVERLAP if encoder is None else LEAST_COSINE
    flagged = {
        PolishedTextFlag.SCORE: _extract_conclusion_term(polished)
        != TERMS[original.score - 1].lower(),
        PolishedTextFlag.STRUCTURE: not all(part in polished.lower() for part in _PARTS),
        PolishedTextFlag.NUMBERS: bool(original.text)
        and _extract_numbers(original.text) != _extract_numbers(polished),
        PolishedTextFlag.NEGATION: bool(original.text)
        and _has_negation(original.text) != _has_negation(_remove_conclusion(polished)),
        PolishedTextFlag.SIMILARITY: similarity is not None and similarity < min_similarity,
        PolishedTextFlag.LENGTH: len(polished.split())
        > max(_SHORT, LONGEST * len(original.text.split())),
    }
    flags = tuple(flag for flag, is_found in flagged.items() if is_found)
    return PolishedTextCheck(
        flags=flags, similarity=similarity, by=encoder.name if encoder else "overlap"
    )


def _extract_conclusion_term(polished: str) -> str:
    """Return the one word for a score in the text's conclusion, such as "good"; "" if none or several."""
    match = _CONCLUSION.search(polished)
    words = {word.lower() for word in re.findall(r"\w+", match[1])} if match else set()
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
        wrote, retained = (Counter(_extract_word_stems(text)) for text in (original, polished))
        return sum((wrote & retained).values()) / max(sum(wrote.values()), 1) if wrote else None
    a, b = embed_sentences([original, polished], encoder)
    return None if a is None or b is None else float(a @ b)


def _extract_word_stems(text: str) -> set[str]:
    """Return the first five letters of each word of four or more letters, to ignore word endings."""
    return {word[:5] for word in _WORD.findall(text.lower())}


_INSTRUMENT: Final = Instrument("polish", 1)
_MOST_LETTERS: Final = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RationalePolishResult:
    """Polished text of one clip's rationales, with the result of its check."""

    original: OriginalRationales
    model: str
    text: str
    checked: PolishedTextCheck


@dataclass(frozen=True, slots=True, kw_only=True)
class RationalePolishFailure:
    """Clip whose rationales could not be polished, with the reason."""

    original: OriginalRationales
    failure: Failure


def polish_all_rationales(
    originals: Sequence[OriginalRationales],
    factory: ReviewerFactory,
    *,
    in_flight: int,
    encoder: SentenceEncoder | None,
) -> list[RationalePolishResult | RationalePolishFailure]:
    """Polish the rationales of each clip with a language model; return results in the same order.

    A clip without a polished text gives a `RationalePolishFailure`.

    Args:
        originals: Rationales of each clip.
        factory: Factory of the language model.
        in_flight: Maximum number of concurrent requests.
        encoder: Sentence encoder for the check of the texts; None compares word stems.
    """
    replies = asyncio.run(_request_polished_texts(originals, factory, in_flight))
    return [
        RationalePolishFailure(original=original, failure=reply)
        if isinstance(reply, Failure)
        else RationalePolishResult(
            original=original,
            model=factory.name,
            text=reply,
            checked=check_polished_text(original, reply, encoder=encoder),
        )
        for original, reply in zip(originals, replies, strict=True)
    ]


async def _request_polished_texts(
    originals: Sequence[OriginalRationales], factory: ReviewerFactory, in_flight: int
) -> list[str | Failure]:
    reviewer = factory.open().reviewer
    gate = asyncio.Semaphore(in_flight)

    async def one(original: OriginalRationales) -> str | Failure:
        async with gate:
            return await _request_polished_text(original, reviewer)

    try:
        return list(await asyncio.gather(*(one(original) for original in originals)))
    finally:
        await reviewer.close()


async def _request_polished_text(original: OriginalRationales, reviewer: Reviewer) -> str | Failure:
    sheet = ReviewRequest(
        key=digest("polish", reviewer.name, original.key),
        instrument=_INSTRUMENT,
        prompt=build_polish_prompt(original),
        exhibits=(),
        condition=Condition(),
    )
    outcome = await reviewer.answer(sheet)
    if isinstance(outcome, Failure):
        return outcome
    text = strip_thinking(outcome.text).strip()[:_MOST_LETTERS]
    return text or Failure(FailureReason.EMPTY_REPLY, "the model polished nothing")
