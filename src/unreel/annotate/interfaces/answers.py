"""Results as a person's clicks would send them: for pre-annotations, simulated annotators, round trips."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, assert_never

from unreel.annotate.campaign import Copy, Interface, Task
from unreel.annotate.interfaces.results import read_result
from unreel.annotate.interfaces.screens import controls_of, marks_of
from unreel.annotate.interfaces.tracks import KeyFrame, write_track
from unreel.annotate.judgements import (
    Passed,
    Preferred,
    Quarantined,
    Rated,
    Screened,
    Traced,
    Value,
    Voted,
)
from unreel.core.errors import InvalidValueError
from unreel.core.judgement import Label, Rating
from unreel.core.trace import Trace
from unreel.core.verdict import Position

Result = dict[str, Any]

INTERFACE_OF: Final[Mapping[str, Interface]] = {
    "screened": Interface.SCREENING,
    "traced": Interface.TRACE,
    "rated": Interface.REALISM,
    "preferred": Interface.PREFERENCE,
    "voted": Interface.REALITY,
    "passed": Interface.PASS_FAIL,
}
"""Where each kind of value is said."""
_VERDICTS: Final = {Label.GENERATED: "traces", Label.REAL: "looks-real", None: "cannot-tell"}


def write_result(value: Value, task: Task, *, swapped: bool) -> list[Result]:
    """The list of results that says `value` of `task`; `read_result` gives the value back.

    Raises:
        InvalidValueError: The screen would not take it: a trace without box or category, a clip that
            looks generated without any trace, a rating without reasons.
    """
    results = list(tell(value, task, swapped=swapped))
    back = read_result(INTERFACE_OF[value.kind], results, task, swapped=swapped)
    if isinstance(back, Quarantined):
        msg = f"no annotator could send this ({back}). Say what the screen asks for"
        raise InvalidValueError(msg)
    return results


def tell(value: Value, task: Task, *, swapped: bool) -> Iterator[Result]:
    """The same without looking whether everything that the screen asks for is there."""
    match value:
        case Screened():
            yield _choice(Interface.SCREENING, "keep", "keep" if value.keep else "remove")
        case Voted():
            yield _choice(Interface.REALITY, "reality", value.label.value)
        case Passed():
            yield _choice(Interface.PASS_FAIL, "passed", "pass" if value.passed else "fail")
        case Preferred():
            left = (value.better is Position.FIRST) is not swapped
            yield _choice(Interface.PREFERENCE, "better", "left" if left else "right")
        case Rated():
            yield from _tell_rating(value.rating)
        case Traced():
            yield _choice(Interface.TRACE, "verdict", _VERDICTS[value.label])
            for number, trace in enumerate(value.traces, 1):
                yield from _tell_trace(trace, task.copies[0], f"trace-{number}")
        case _:
            assert_never(value)


def _tell_rating(rating: Rating | None) -> Iterator[Result]:
    if rating is None:
        yield _choice(Interface.REALISM, "discard", "discard")
        return
    yield _choice(Interface.REALISM, "score", str(rating.score))
    for name, text in (("problem", rating.problem), ("adherence", rating.adherence)):
        if text:
            yield _result(Interface.REALISM, name, {"text": [text]})
    if rating.family is not None:
        yield _choice(Interface.REALISM, "family", rating.family.value)


def _tell_trace(trace: Trace, copy: Copy, region: str) -> Iterator[Result]:
    place = {
        "framesCount": copy.n_frames,
        "duration": copy.duration_us / 1e6,
        "sequence": [_entry(key, copy) for key in write_track(trace, copy)],
    }
    marks = {"labels": sorted(marks_of(Interface.TRACE))}
    yield _result(Interface.TRACE, "box", place | marks, region)
    if trace.categories:
        words = {"choices": sorted(category.value for category in trace.categories)}
        yield _result(Interface.TRACE, "category", place | words, region)
    if trace.explanation:
        text = {"text": [trace.explanation]}
        yield _result(Interface.TRACE, "explanation", place | text, region)


def _entry(key: KeyFrame, copy: Copy) -> dict[str, float]:
    box = key.box
    return {
        "frame": key.frame,
        "enabled": key.enabled,
        "rotation": 0,
        "x": box.x0 * 100,
        "y": box.y0 * 100,
        "width": (box.x1 - box.x0) * 100,
        "height": (box.y1 - box.y0) * 100,
        "time": float(key.frame / copy.rate),  # one frame late, as the screen writes it
    }


def _choice(interface: Interface, name: str, word: str) -> Result:
    return _result(interface, name, {"choices": [word]})


def _result(
    interface: Interface, name: str, value: dict[str, Any], region: str | None = None
) -> Result:
    control = controls_of(interface)[name]
    return {
        "id": region or name,
        "from_name": name,
        "to_name": control.about,
        "type": control.kind,
        "origin": "manual",
        "value": value,
    }
