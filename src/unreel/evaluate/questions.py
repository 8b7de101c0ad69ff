"""From the entries of a benchmark to questions: the same ones in the same order each time."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from unreel.benchmarks.entry import Entry, Rejected
from unreel.benchmarks.opening import Benchmark
from unreel.benchmarks.truth import truths_of
from unreel.core.clip import ClipId
from unreel.core.errors import InvalidValueError
from unreel.core.failure import Failure
from unreel.core.identity import digest
from unreel.core.judgement import Label, Pair
from unreel.core.question import Condition, Instrument, Question
from unreel.core.span import to_us
from unreel.evaluate.showing import SurveyedClip
from unreel.evaluate.survey import Survey
from unreel.protocols.preference.order import balance_order

_UNKNOWN_US: Final = 1
"""Stands for the length of a clip that cannot be read: its rows are failures and use none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """One question, what is shown for it, and the truth: one for each row that is scored."""

    name: str
    """The entry's name, or both names of a pair."""
    question: Question
    clips: tuple[SurveyedClip, ...]
    truths: tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unaskable:
    """A clip that cannot be read: every question about it is a failure."""

    name: str
    subject: ClipId
    truths: tuple[Any, ...]
    failure: Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What is asked about each clip."""

    instrument: Instrument
    conditions: tuple[Condition, ...]
    seed: int
    """Of the order in pairs."""


def plan_questions(
    benchmark: Benchmark, entries: Iterable[Entry], *, survey: Survey, scope: Scope
) -> Iterator[Planned | Unaskable | Rejected]:
    """Every question about `entries`, the clips that cannot be read, and what has no truth."""
    if scope.instrument.protocol == "preference":
        yield from _plan_pairs(benchmark, entries, survey=survey, scope=scope)
        return
    for entry, clip in survey.find(benchmark, entries):
        yield from _plan_clip(entry, clip, scope)


def _plan_clip(
    entry: Entry, clip: SurveyedClip | Failure, scope: Scope
) -> Iterator[Planned | Unaskable | Rejected]:
    length_us = _UNKNOWN_US
    if not isinstance(clip, Failure):
        length_us = to_us(clip.facts.video.duration_s)
    try:
        truths = truths_of(entry, scope.instrument.protocol, duration_us=length_us)
    except InvalidValueError as error:
        yield Rejected(entry.name, str(error))
        return
    if isinstance(clip, Failure):
        subject = ClipId(digest("entry", entry.name))
        yield Unaskable(name=entry.name, subject=subject, truths=truths, failure=clip)
        return
    for condition in scope.conditions:
        if condition.audio == "on" and not clip.facts.audio:
            continue  # a cell that cannot be measured stays empty
        question = Question(subject=clip.id, instrument=scope.instrument, condition=condition)
        yield Planned(name=entry.name, question=question, clips=(clip,), truths=truths)


def _plan_pairs(
    benchmark: Benchmark, entries: Iterable[Entry], *, survey: Survey, scope: Scope
) -> Iterator[Planned | Unaskable | Rejected]:
    real: dict[str, SurveyedClip] = {}
    generated: list[tuple[str, SurveyedClip]] = []
    names: dict[ClipId, str] = {}
    for entry, clip in survey.find(benchmark, entries):
        if not entry.group:
            yield Rejected(entry.name, "it belongs to no group, so nothing pairs with it")
        elif isinstance(clip, Failure):
            subject = ClipId(digest("entry", entry.name))
            yield Unaskable(name=entry.name, subject=subject, truths=(), failure=clip)
        else:
            names[clip.id] = entry.name
            if entry.label is Label.GENERATED:
                generated.append((entry.group, clip))
            else:
                real.setdefault(entry.group, clip)
    clips = {clip.id: clip for clip in [*real.values(), *(clip for _, clip in generated)]}
    pairs = [(real[group].id, clip.id) for group, clip in generated if group in real]
    for shown in balance_order(pairs, seed=scope.seed):
        both = (clips[shown.pair.first], clips[shown.pair.second])
        for condition in scope.conditions:
            if condition.audio == "on" and not all(clip.facts.audio for clip in both):
                continue
            yield Planned(
                name=" | ".join(names[clip.id] for clip in both),
                question=Question(
                    subject=shown.pair, instrument=scope.instrument, condition=condition
                ),
                clips=both,
                truths=(shown.real,),
            )


def shown_ids(question: Question) -> tuple[ClipId, ...]:
    """The clips of a question in the order shown."""
    subject = question.subject
    return (subject.first, subject.second) if isinstance(subject, Pair) else (subject,)
