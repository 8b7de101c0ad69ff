"""From the entries of a benchmark to questions: the same ones in the same order each time."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from unreel.benchmarks.entry import Entry, Rejected
from unreel.benchmarks.opening import Benchmark
from unreel.benchmarks.pairing import pair_entries
from unreel.benchmarks.truth import truths_of
from unreel.core.clip import Clip, ClipId, Origin
from unreel.core.errors import InvalidSettingError, InvalidValueError
from unreel.core.failure import Failure
from unreel.core.identity import digest_id
from unreel.core.judgement import Pair
from unreel.core.question import Condition, Instrument, Question
from unreel.core.span import to_us
from unreel.evaluate.survey import Survey, Surveyed

_UNKNOWN_US: Final = 1
"""Stands for the length of a clip that cannot be read: its rows are failures and use none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """One question, what is shown for it, and the truth: one for each row that is scored."""

    name: str
    """The entry's name, or both names of a pair."""
    question: Question
    clips: tuple[Clip, ...]
    truths: tuple[Any, ...]
    origins: tuple[Origin, ...]
    """Where the clips come from, in the order shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unaskable:
    """A clip that cannot be read: its question under each of these conditions is a failure."""

    name: str
    subject: ClipId
    conditions: tuple[Condition, ...]
    truths: tuple[Any, ...]
    origins: tuple[Origin, ...]
    failure: Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What is asked about each clip."""

    instrument: Instrument
    conditions: tuple[Condition, ...]
    seed: int
    """Of the order in pairs."""

    @property
    def shows_cleaned(self) -> bool:
        """Whether clips without their watermark are shown."""
        return any(condition.watermark == "removed" for condition in self.conditions)


Plan = Iterator[Planned | Unaskable | Rejected]


def plan_questions(
    benchmark: Benchmark, entries: Iterable[Entry], *, survey: Survey, scope: Scope
) -> Plan:
    """Every question about `entries`, the clips that cannot be read, and what has no truth.

    A cell that cannot be measured stays empty: no question with sound about a clip that has none,
    and none without its watermark about a clip that has no such copy.
    """
    surveyed = survey.find_files(benchmark, entries, cleaned=scope.shows_cleaned)
    if scope.instrument.protocol == "preference":
        yield from _plan_pairs(surveyed, scope)
        return
    for found in surveyed:
        yield from _plan_clip(found, scope)


def require_cleaned(entries: Iterable[Entry], scope: Scope) -> None:
    """Refuse `watermark=removed` where no entry has a copy without its watermark."""
    if scope.shows_cleaned and not any(entry.cleaned for entry in entries):
        setting, problem = "watermark", "no clip of the benchmark has a copy without its watermark"
        remedy = "Ask with watermark=kept, or name such copies in a column `cleaned`"
        raise InvalidSettingError(setting, problem, remedy)


def _plan_clip(found: Surveyed, scope: Scope) -> Plan:
    for shown, conditions in _by_file(found, scope):
        yield from _plan_file(found.entry, shown, replace(scope, conditions=conditions))


def _by_file(
    found: Surveyed, scope: Scope
) -> Iterator[tuple[Clip | Failure, tuple[Condition, ...]]]:
    """What is shown of an entry, each file once with the conditions that show it."""
    for mark in ("kept", "removed"):
        conditions = tuple(c for c in scope.conditions if c.watermark == mark)
        shown = found.under(conditions[0]) if conditions else None
        if shown is not None:
            yield shown, conditions


def _plan_file(entry: Entry, clip: Clip | Failure, scope: Scope) -> Plan:
    length_us = _UNKNOWN_US
    if not isinstance(clip, Failure):
        length_us = to_us(clip.facts.video.duration_s)
    try:
        truths = truths_of(entry, scope.instrument.protocol, duration_us=length_us)
    except InvalidValueError as error:
        yield Rejected(entry.name, str(error))
        return
    if isinstance(clip, Failure):
        yield _unaskable(entry, clip, conditions=scope.conditions, truths=truths)
        return
    for condition in scope.conditions:
        if condition.audio == "off" or clip.facts.audio:
            question = Question(subject=clip.id, instrument=scope.instrument, condition=condition)
            yield Planned(
                name=entry.name,
                question=question,
                clips=(clip,),
                truths=truths,
                origins=(entry.origin,),
            )


def _unaskable(
    entry: Entry, failure: Failure, *, conditions: tuple[Condition, ...], truths: tuple[Any, ...]
) -> Unaskable:
    subject = digest_id("entry", entry.name)
    return Unaskable(
        name=entry.name,
        subject=subject,
        conditions=conditions,
        truths=truths,
        origins=(entry.origin,),
        failure=failure,
    )


def _plan_pairs(surveyed: Iterable[Surveyed], scope: Scope) -> Plan:
    known: dict[ClipId, Surveyed] = {}
    unaskable: list[Unaskable] = []

    def readable() -> Iterator[tuple[Entry, ClipId]]:
        for found in surveyed:
            if isinstance(found.clip, Failure):
                # A pair that cannot be shown is no question: nothing is scored for it.
                gone = _unaskable(found.entry, found.clip, conditions=scope.conditions, truths=())
                unaskable.append(gone)
            else:
                known.setdefault(found.clip.id, found)
                yield found.entry, found.clip.id

    for paired in pair_entries(readable(), seed=scope.seed):
        if isinstance(paired, Rejected):
            yield paired
            continue
        both = (known[paired.pair.first], known[paired.pair.second])
        for condition in scope.conditions:
            clips = _shown_together(both, condition)
            if clips is not None:
                subject = Pair(clips[0].id, clips[1].id)
                yield Planned(
                    name=paired.name,
                    question=Question(
                        subject=subject, instrument=scope.instrument, condition=condition
                    ),
                    clips=clips,
                    truths=(paired.real,),
                    origins=(paired.first.origin, paired.second.origin),
                )
    yield from unaskable


def _shown_together(
    both: tuple[Surveyed, Surveyed], condition: Condition
) -> tuple[Clip, Clip] | None:
    first, second = (found.under(condition) for found in both)
    if not isinstance(first, Clip) or not isinstance(second, Clip):
        return None
    if condition.audio == "on" and not (first.facts.audio and second.facts.audio):
        return None
    return first, second


def shown_ids(question: Question) -> tuple[ClipId, ...]:
    """The clips of a question in the order shown."""
    subject = question.subject
    return (subject.first, subject.second) if isinstance(subject, Pair) else (subject,)
