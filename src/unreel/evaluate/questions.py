"""From the entries of a benchmark to questions: the same ones in the same order each time."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from unreel.benchmarks.entry import Entry
from unreel.benchmarks.opening import Benchmark
from unreel.core.clip import ClipId
from unreel.core.failure import Failure
from unreel.core.identity import digest
from unreel.core.judgement import Label, Pair, Rating
from unreel.core.question import Condition, Instrument, Question
from unreel.core.span import to_us
from unreel.evaluate.showing import SurveyedClip
from unreel.evaluate.survey import Survey
from unreel.protocols.preference.order import balance_order
from unreel.protocols.trace.truth import TraceTruth

_LOOK: Final = 512


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
) -> Iterator[Planned | Unaskable]:
    """Every question about `entries`, and the clips that no question can be put about.

    Entries without the truth that the instrument compares with are left out.
    """
    if scope.instrument.protocol == "preference":
        yield from _plan_pairs(benchmark, entries, survey=survey, scope=scope)
        return
    usable = (entry for entry in entries if _has_truth(entry, scope.instrument))
    for chunk in _chunks(usable):
        found = survey.look_up([benchmark.find(entry) for entry in chunk])
        for entry in chunk:
            yield from _plan_clip(entry, found[benchmark.find(entry)], scope)


def _plan_clip(
    entry: Entry, clip: SurveyedClip | Failure, scope: Scope
) -> Iterator[Planned | Unaskable]:
    if isinstance(clip, Failure):
        subject = ClipId(digest("entry", entry.name))
        truths = _truths(entry, scope.instrument, duration_us=1)
        yield Unaskable(name=entry.name, subject=subject, truths=truths, failure=clip)
        return
    truths = _truths(entry, scope.instrument, duration_us=to_us(clip.facts.video.duration_s))
    for condition in scope.conditions:
        if condition.audio == "on" and not clip.facts.audio:
            continue  # a cell that cannot be measured stays empty
        question = Question(subject=clip.id, instrument=scope.instrument, condition=condition)
        yield Planned(name=entry.name, question=question, clips=(clip,), truths=truths)


def _plan_pairs(
    benchmark: Benchmark, entries: Iterable[Entry], *, survey: Survey, scope: Scope
) -> Iterator[Planned | Unaskable]:
    real: dict[str, SurveyedClip] = {}
    generated: list[tuple[str, SurveyedClip]] = []
    names: dict[ClipId, str] = {}
    grouped = (entry for entry in entries if entry.group)
    for chunk in _chunks(grouped):
        found = survey.look_up([benchmark.find(entry) for entry in chunk])
        for entry in chunk:
            clip = found[benchmark.find(entry)]
            if isinstance(clip, Failure):
                subject = ClipId(digest("entry", entry.name))
                yield Unaskable(name=entry.name, subject=subject, truths=(), failure=clip)
                continue
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


def _has_truth(entry: Entry, instrument: Instrument) -> bool:
    return instrument.protocol != "realism" or entry.rating is not None


def _truths(entry: Entry, instrument: Instrument, *, duration_us: int) -> tuple[Any, ...]:
    match instrument.protocol:
        case "trace":
            length_us = entry.facts.duration_us or duration_us
            return tuple(
                TraceTruth(label=entry.label, duration_us=length_us, trace=trace)
                for trace in entry.traces or (None,)
            )
        case "realism":
            rating: Rating | None = entry.rating
            return (rating,)
        case _:
            return (entry.origin,)


def _chunks(entries: Iterable[Entry]) -> Iterator[Sequence[Entry]]:
    source = iter(entries)
    while chunk := list(itertools.islice(source, _LOOK)):
        yield chunk
