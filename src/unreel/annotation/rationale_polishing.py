"""Polishing of annotators' rationales by a language model, with people's confirmations.

Both are stored as ledger notices, and the original rationales are kept.
"""

import asyncio
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from unreel.annotation.campaign import AnnotationInterface, AnyValue, LedgerNotice, RatingAnswer
from unreel.annotation.campaign_state import (
    CampaignRecords,
    compute_campaign_consensus,
    iter_valid_judgements,
)
from unreel.annotation.consensus.outcome import ConsensusRule, SettledTask
from unreel.core.content_ids import digest
from unreel.core.errors import InvalidSettingError, MissingExtraError
from unreel.core.failure import Failure, FailureReason
from unreel.core.question import Condition, Instrument
from unreel.protocols.answer_text import strip_thinking
from unreel.protocols.realism.prompts import TERMS
from unreel.reviewers.contract import ReviewRequest
from unreel.reviewers.factory import ReviewerFactory
from unreel.reviewers.sentence_embeddings import MiniLmEncoder, SentenceEncoder, embed_sentences

if TYPE_CHECKING:
    from unreel.annotation.ledger.ledger import Ledger
    from unreel.core.judgement import Rating


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginalRationales:
    """Annotators' rationales for the consensus score of one clip."""

    task: str
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
        return "\n".join((*self.problems, *self.adherences))


def read_polish_prompt() -> str:
    """Return VideoRealBench's original prompt for polishing."""
    return files(__package__).joinpath("vrb-polish.txt").read_text(encoding="utf-8")


def build_polish_prompt(original: OriginalRationales) -> str:
    """Build the prompt that asks a model to merge rationales; they are separated by ` | `."""
    problems, adherences = (
        " | ".join(" ".join(text.split()) for text in texts) or "(none)"
        for texts in (original.problems, original.adherences)
    )
    return (
        f"{read_polish_prompt().rstrip()}\n\n<Score>: {original.score}\n"
        f"<Problem Description>: {problems}\n<Standard Adherence>: {adherences}\n"
    )


def iter_original_rationales(
    records: CampaignRecords, rule: ConsensusRule
) -> Iterator[OriginalRationales]:
    """Yield the annotators' rationales of each clip with a consensus score, in the order of the tasks.

    They are those of all annotators who gave the consensus score. If no annotator gave it, it is
    the rationale that the consensus chose.
    """
    if records.campaign.interface is not AnnotationInterface.REALISM:
        raise InvalidSettingError(
            "CAMPAIGN",
            f"{records.campaign.name} asks for no scores and rationales",
            "Name a campaign of --interface realism",
        )
    consensus = compute_campaign_consensus(records, rule)
    ratings: dict[str, list[Rating]] = {}
    for opinion in iter_valid_judgements(records):
        if isinstance(opinion.value, RatingAnswer) and opinion.value.rating is not None:
            ratings.setdefault(opinion.task.id, []).append(opinion.value.rating)
    for id_, task in records.tasks.items():
        outcome = consensus.tasks.get(id_)
        if not isinstance(outcome, SettledTask) or not isinstance(outcome.value, RatingAnswer):
            continue
        if (consensus_rating := outcome.value.rating) is None:
            continue
        same = [rating for rating in ratings.get(id_, []) if rating.score == consensus_rating.score]
        merged = same or [consensus_rating]
        problems, adherences = (
            tuple(dict.fromkeys(text.strip() for text in texts if text.strip()))
            for texts in ([r.problem for r in merged], [r.adherence for r in merged])
        )
        yield OriginalRationales(
            task=id_,
            name=task.names[0],
            score=consensus_rating.score,
            problems=problems,
            adherences=adherences,
        )


MIN_COSINE = 0.5
MIN_OVERLAP = 0.5
"""Minimum fraction of the originals' content words in the polished text."""
LONGEST = 4
"""Maximum length as a multiple of the originals' number of words; 120 words are always allowed."""
_SHORT = 120
_PARTS = ("problem description", "standard adherence", "conclusion")
_CONCLUSION = re.compile(r"conclusion\W+(.*)", re.IGNORECASE | re.DOTALL)
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_NEGATION = re.compile(r"\b(?:no|not|never|without|none|cannot|\w+n['\u2019]t)\b", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]{4,}")


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

    Without an `encoder`, word stems are compared.
    """
    similarities = []
    for part in ("\n".join(texts) for texts in (original.problems, original.adherences) if texts):
        if encoder is None:
            # The first five letters of each longer word, to ignore word endings.
            stems, polished_stems = (
                {word[:5] for word in _WORD.findall(text.lower())} for text in (part, polished)
            )
            if stems:
                similarities.append(len(stems & polished_stems) / len(stems))
        else:
            a, b = embed_sentences([part, polished], encoder)
            if a is not None and b is not None:
                similarities.append(float(a @ b))
    similarity = min(similarities, default=None)
    min_similarity = MIN_OVERLAP if encoder is None else MIN_COSINE
    match = _CONCLUSION.search(polished)
    words = {word.lower() for word in re.findall(r"\w+", match[1])} if match else set()
    named = [term.lower() for term in TERMS if term.lower() in words]
    text, body = original.text, _CONCLUSION.sub("", polished)
    numbers = set(_NUMBER.findall(text)), set(_NUMBER.findall(polished))
    has_negation = bool(_NEGATION.search(text)), bool(_NEGATION.search(body))
    max_words = max(_SHORT, LONGEST * len(text.split()))
    flagged = {
        PolishedTextFlag.SCORE: named != [TERMS[original.score - 1].lower()],
        PolishedTextFlag.STRUCTURE: not all(part in polished.lower() for part in _PARTS),
        PolishedTextFlag.NUMBERS: bool(text) and numbers[0] != numbers[1],
        PolishedTextFlag.NEGATION: bool(text) and has_negation[0] != has_negation[1],
        PolishedTextFlag.SIMILARITY: similarity is not None and similarity < min_similarity,
        PolishedTextFlag.LENGTH: len(polished.split()) > max_words,
    }
    flags = tuple(flag for flag, is_found in flagged.items() if is_found)
    return PolishedTextCheck(
        flags=flags, similarity=similarity, by=encoder.name if encoder else "overlap"
    )


_INSTRUMENT = Instrument("polish", 1)
_MAX_LETTERS = 20_000


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

    A clip without a polished text gives a `RationalePolishFailure`. Without an `encoder`, the check
    compares word stems.
    """

    async def polish_all() -> list[str | Failure]:
        reviewer = factory.open().reviewer
        gate = asyncio.Semaphore(in_flight)

        async def polish(original: OriginalRationales) -> str | Failure:
            async with gate:
                request = ReviewRequest(
                    key=digest("polish", reviewer.name, original.key),
                    instrument=_INSTRUMENT,
                    prompt=build_polish_prompt(original),
                    inputs=(),
                    condition=Condition(),
                )
                outcome = await reviewer.answer(request)
                if isinstance(outcome, Failure):
                    return outcome
                text = strip_thinking(outcome.text).strip()[:_MAX_LETTERS]
                return text or Failure(FailureReason.EMPTY_REPLY, "the model polished nothing")

        try:
            return list(await asyncio.gather(*map(polish, originals)))
        finally:
            await reviewer.close()

    replies = asyncio.run(polish_all())
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


POLISH = "polish"
CONFIRMATION = "confirmation"


class PolishedTextState(StrEnum):
    """State of a polished text: waiting for a person's decision, confirmed or rejected."""

    WAITING = "waiting"
    CONFIRMED = "confirmed"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True, kw_only=True)
class PolishedText:
    """Newest polished text of the rationales of a task, and a person's decision about it."""

    task: str
    seq: int
    model: str
    original: str
    """Key of the original rationales."""
    text: str
    flags: tuple[str, ...]
    similarity: float | None
    standing: PolishedTextState
    by: str = ""
    """Name of the person who confirmed or rejected the text."""


def store_polished_texts(
    ledger: "Ledger", campaign: str, polished: Iterable[RationalePolishResult], *, at_us: int
) -> None:
    """Store polished rationales in the ledger, one decision notice for each."""
    for result in polished:
        content = {
            "original": result.original.key,
            "text": result.text,
            "flags": result.checked.flags,
            "similarity": result.checked.similarity,
            "checked_by": result.checked.by,
        }
        text = json.dumps(content, sort_keys=True)
        ledger.notice(campaign, POLISH, result.original.task, result.model, text, at_us)


def read_polished_texts(notices: Sequence[LedgerNotice]) -> dict[str, PolishedText]:
    """Return each task's newest polished text, with its own confirmation or rejection only."""
    texts: dict[str, PolishedText] = {}
    for notice in notices:
        if notice.kind == POLISH:
            content = _parse_notice_json(notice)
            texts[notice.subject] = PolishedText(
                task=notice.subject,
                seq=notice.seq,
                model=notice.by,
                original=str(content.get("original", "")),
                text=str(content.get("text", "")),
                flags=tuple(map(str, content.get("flags", ()))),
                similarity=content.get("similarity"),
                standing=PolishedTextState.WAITING,
            )
    for notice in notices:
        decision = _parse_notice_json(notice) if notice.kind == CONFIRMATION else {}
        text = texts.get(notice.subject)
        if text is not None and decision.get("polish") == text.seq:
            state = (
                PolishedTextState.CONFIRMED
                if decision.get("accepted") is True
                else PolishedTextState.REJECTED
            )
            texts[notice.subject] = replace(text, standing=state, by=notice.by)
    return texts


def store_polish_confirmation(
    ledger: "Ledger", campaign: str, text: PolishedText, *, by: str, accepted: bool, at_us: int
) -> None:
    """Store a person's decision to accept or reject the polished `text`; earlier decisions are kept."""
    content = json.dumps({"polish": text.seq, "accepted": accepted}, sort_keys=True)
    ledger.notice(campaign, CONFIRMATION, text.task, by, content, at_us)


def _parse_notice_json(notice: LedgerNotice) -> dict[str, Any]:
    try:
        content = json.loads(notice.said)
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


_STORED_PARTS = re.compile(
    r"problem description\W*?:(?P<problem>.*?)standard adherence\W*?:(?P<adherence>.*?)"
    r"(?:conclusion\W*?:.*)?\Z",
    re.IGNORECASE | re.DOTALL,
)
_LIST_CHARACTERS = " \t\r\n-*#:"
"""Whitespace and markup of lists and headings, which models add around the parts."""


@dataclass(frozen=True, slots=True)
class PolishedRationale:
    """Rationale of a score that a language model merged from several, and that a person confirmed."""

    problem: str
    adherence: str

    def reworded(self, value: AnyValue) -> AnyValue:
        """Return `value` with the polished rationale instead of the annotator's; nothing else changes."""
        if not isinstance(value, RatingAnswer) or value.rating is None:
            return value
        rating = replace(value.rating, problem=self.problem, adherence=self.adherence)
        return RatingAnswer(rating=rating)


def read_confirmed_rationales(
    records: CampaignRecords, rule: ConsensusRule, notices: Sequence[LedgerNotice]
) -> dict[str, PolishedRationale]:
    """Return the confirmed polished rationales by task id, for tasks with a consensus score.

    A confirmation is valid while the score and the original rationales are unchanged. Texts without
    both parts, problem description and standard adherence, are omitted.
    """
    if records.campaign.interface is not AnnotationInterface.REALISM:
        return {}
    texts = read_polished_texts(notices)
    rationales: dict[str, PolishedRationale] = {}
    for original in iter_original_rationales(records, rule):
        text = texts.get(original.task)
        if text is None or (text.standing, text.original) != (
            PolishedTextState.CONFIRMED,
            original.key,
        ):
            continue
        if (rationale := parse_polished_rationale(text.text)) is not None:
            rationales[original.task] = rationale
    return rationales


def parse_polished_rationale(text: str) -> PolishedRationale | None:
    """Parse problem description and standard adherence of a polished text; `None` if one is missing."""
    if (match := _STORED_PARTS.search(text)) is None:
        return None
    problem, adherence = (match[part].strip(_LIST_CHARACTERS) for part in ("problem", "adherence"))
    return PolishedRationale(problem, adherence) if problem and adherence else None
