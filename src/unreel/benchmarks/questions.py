"""Questions of a benchmark: the same questions in the same order for every caller."""

import typing
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from unreel.benchmarks.entry import Entry, Rejected
from unreel.benchmarks.pairing import format_pair_name, pair_real_and_generated_clips
from unreel.benchmarks.statistics import build_no_question_error
from unreel.core.clip import ClipFacts, ClipId, Origin
from unreel.core.content_ids import compute_placeholder_clip_id
from unreel.core.errors import InvalidValueError
from unreel.core.failure import Failure
from unreel.core.judgement import build_question_subject
from unreel.core.question import Condition, Instrument, Question
from unreel.core.span import convert_to_microseconds
from unreel.protocols.protocol import Protocol, get_protocol

_UNKNOWN_US = 1
"""Placeholder for the duration of an unreadable clip, whose rows are failures and do not use it."""


class ClipWithId(typing.Protocol):
    """Interface of a clip with its id and, if they were read, the properties of its file."""

    @property
    def id(self) -> ClipId:
        """Return the id of the clip, a hash of its bytes."""
        ...

    @property
    def facts(self) -> ClipFacts | None:
        """Return the properties of the clip's streams; `None` if they were not needed."""
        ...


C = TypeVar("C", bound=ClipWithId)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbedEntry(Generic[C]):
    """Entry with the properties of its file, and of the copy without watermark if there is one."""

    entry: Entry
    clip: C | Failure
    cleaned: C | Failure | None = None

    def under(self, condition: Condition) -> C | Failure | None:
        """Return the clip shown under `condition`; `None` if it needs a missing copy without watermark."""
        return self.clip if condition.watermark == "kept" else self.cleaned


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedQuestion(Generic[C]):
    """One question with its clips, and the ground truth of each row that it is scored as."""

    name: str
    """Name of the entry, or both names of a pair."""
    question: Question
    clips: tuple[C, ...]
    truths: tuple[Any, ...]
    origins: tuple[Origin, ...]
    """Origins of the clips, in the order shown."""
    source: str
    """Scene of the clips; "" if unknown."""
    difficulty: str
    """Difficulty of the clips according to the benchmark; "" if not given."""
    caption: str = ""
    """Prompt of the generator of a single clip; "" if not given, or for a pair."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableClip:
    """A clip that cannot be read; its question under each of `conditions` is a failure."""

    name: str
    subject: ClipId
    conditions: tuple[Condition, ...]
    truths: tuple[Any, ...]
    origins: tuple[Origin, ...]
    source: str
    difficulty: str
    failure: Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionScope:
    """Protocol and conditions of the questions about every clip or pair of a benchmark."""

    instrument: Instrument
    conditions: tuple[Condition, ...]
    seed: int
    """Seed of the order in pairs."""

    @property
    def protocol(self) -> Protocol[Any, Any]:
        """Return the protocol with its prompts, parser and metrics."""
        return get_protocol(self.instrument.protocol)

    @property
    def shows_cleaned(self) -> bool:
        """Return whether a condition shows the copies of clips without watermark."""
        return any(condition.watermark == "removed" for condition in self.conditions)


def plan_questions(
    probed: Iterable[ProbedEntry[C] | Rejected], scope: QuestionScope
) -> Iterator[PlannedQuestion[C] | UnreadableClip | Rejected]:
    """Yield the questions about all probed entries, and the clips and rows without a question.

    These are unreadable clips and rejected rows; for pairs they come last. No question is planned
    with sound about a clip without sound, or without watermark about a clip without such a copy.
    """
    if scope.protocol.subject == "pair":
        yield from _plan_pair_questions(probed, scope)
        return
    # The conditions by the file of an entry that they show: original, or without watermark.
    groups = [
        tuple(c for c in scope.conditions if c.watermark == mark) for mark in ("kept", "removed")
    ]
    for item in probed:
        if isinstance(item, Rejected):
            yield item
            continue
        for conditions in filter(None, groups):
            clip = item.under(conditions[0])
            if clip is not None:
                yield from _plan_file_questions(item.entry, clip, conditions, scope)


def require_some_question(
    planned: Iterable[PlannedQuestion[C] | UnreadableClip | Rejected],
    scope: QuestionScope,
    *,
    source: str,
) -> Iterator[PlannedQuestion[C] | UnreadableClip | Rejected]:
    """Yield the planned questions of the benchmark `source`; raise at the end if there were none.

    Raise `UnreadableSourceError` if there was no question.
    """
    n_questions, first = 0, list[Rejected]()
    for item in planned:
        if isinstance(item, Rejected):
            first = first or [item]
        elif isinstance(item, UnreadableClip) and not item.truths:
            first = first or [Rejected(item.name, str(item.failure))]
        else:
            n_questions += 1
        yield item
    if not n_questions:
        raise build_no_question_error(source, scope.protocol, first)


def find_entries_without_truth(entries: Iterable[Entry], scope: QuestionScope) -> list[Rejected]:
    """Return entries that lack the protocol's truth, with reasons; opens no file, none for pairs."""
    truthless: list[Rejected] = []
    for entry in entries if scope.protocol.subject == "clip" else ():
        try:
            scope.protocol.truths.of([entry], duration_us=entry.facts.duration_us or _UNKNOWN_US)
        except InvalidValueError as error:
            truthless.append(Rejected(entry.name, str(error)))
    return truthless


def _plan_file_questions(
    entry: Entry, clip: C | Failure, conditions: tuple[Condition, ...], scope: QuestionScope
) -> Iterator[PlannedQuestion[C] | UnreadableClip | Rejected]:
    duration_us: int | None = _UNKNOWN_US
    if not isinstance(clip, Failure):
        facts = clip.facts
        duration_us = None if facts is None else convert_to_microseconds(facts.video.duration_s)
    duration_us = entry.facts.duration_us or duration_us
    try:
        truths = scope.protocol.truths.of([entry], duration_us=duration_us)
    except InvalidValueError as error:
        yield Rejected(entry.name, str(error))
        return
    if isinstance(clip, Failure):
        yield _build_unreadable_clip(entry, clip, conditions=conditions, truths=truths)
        return
    for condition in conditions:
        if _has_required_audio((clip,), condition):
            yield _build_planned_question((entry,), (clip,), truths, condition, scope)


def _build_planned_question(
    entries: tuple[Entry, ...],
    clips: tuple[C, ...],
    truths: tuple[Any, ...],
    condition: Condition,
    scope: QuestionScope,
) -> PlannedQuestion[C]:
    subject = build_question_subject(*[clip.id for clip in clips])
    return PlannedQuestion(
        name=format_pair_name(*[entry.name for entry in entries]),
        question=Question(subject=subject, instrument=scope.instrument, condition=condition),
        clips=clips,
        truths=truths,
        origins=tuple([entry.origin for entry in entries]),
        source=entries[0].group,
        difficulty=entries[0].difficulty,
        caption=entries[0].prompt if len(entries) == 1 else "",
    )


def _has_required_audio(clips: tuple[ClipWithId, ...], condition: Condition) -> bool:
    return condition.audio == "off" or all(clip.facts and clip.facts.audio for clip in clips)


def _build_unreadable_clip(
    entry: Entry, failure: Failure, *, conditions: tuple[Condition, ...], truths: tuple[Any, ...]
) -> UnreadableClip:
    return UnreadableClip(
        name=entry.name,
        subject=compute_placeholder_clip_id("entry", entry.name),
        conditions=conditions,
        truths=truths,
        origins=(entry.origin,),
        source=entry.group,
        difficulty=entry.difficulty,
        failure=failure,
    )


def _plan_pair_questions(
    probed: Iterable[ProbedEntry[C] | Rejected], scope: QuestionScope
) -> Iterator[PlannedQuestion[C] | UnreadableClip | Rejected]:
    known: dict[ClipId, ProbedEntry[C]] = {}
    unusable: list[UnreadableClip | Rejected] = []

    def readable() -> Iterator[tuple[Entry, ClipId]]:
        for item in probed:
            if isinstance(item, Rejected):
                unusable.append(item)
            elif isinstance(item.clip, Failure):
                # A pair that cannot be shown is not a question, so nothing is scored for it.
                gone = _build_unreadable_clip(
                    item.entry, item.clip, conditions=scope.conditions, truths=()
                )
                unusable.append(gone)
            else:
                known.setdefault(item.clip.id, item)
                yield item.entry, item.clip.id

    for paired in pair_real_and_generated_clips(readable(), seed=scope.seed):
        if isinstance(paired, Rejected):
            yield paired
            continue
        entries = (paired.first, paired.second)
        truths = scope.protocol.truths.of(entries, duration_us=None)
        for condition in scope.conditions:
            pair = [
                known[clip].under(condition) for clip in (paired.pair.first, paired.pair.second)
            ]
            clips = tuple(clip for clip in pair if clip and not isinstance(clip, Failure))
            if len(clips) == len(pair) and _has_required_audio(clips, condition):
                yield _build_planned_question(entries, clips, truths, condition, scope)
    yield from unusable
