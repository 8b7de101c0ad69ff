"""Results as a person's clicks would send them: for pre-annotations, simulated annotators, round trips."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, assert_never

from unreel.annotation.campaign import AnnotationInterface, AnnotationTask, ClipCopy
from unreel.annotation.interfaces.judgement_parser import read_result
from unreel.annotation.interfaces.screens import get_box_labels, get_controls
from unreel.annotation.interfaces.tracks import KeyFrame, write_track
from unreel.annotation.judgements import (
    PassFailAnswer,
    PreferenceAnswer,
    QuarantinedSubmission,
    RatingAnswer,
    ScreeningAnswer,
    TraceAnswer,
    Value,
    VoteAnswer,
)
from unreel.core.errors import InvalidValueError
from unreel.core.judgement import Label, Rating
from unreel.core.trace import Trace
from unreel.core.verdict import Position

Result = dict[str, Any]

INTERFACE_OF: Final[Mapping[str, AnnotationInterface]] = {
    "screened": AnnotationInterface.SCREENING,
    "traced": AnnotationInterface.TRACE,
    "rated": AnnotationInterface.REALISM,
    "preferred": AnnotationInterface.PREFERENCE,
    "voted": AnnotationInterface.REALITY,
    "passed": AnnotationInterface.PASS_FAIL,
}
"""Where each kind of value is said."""
_VERDICTS: Final = {Label.GENERATED: "traces", Label.REAL: "looks-real", None: "cannot-tell"}


def write_result(value: Value, task: AnnotationTask, *, swapped: bool) -> list[Result]:
    """Return `value` as Label Studio results for `task`; `read_result` parses the value back.

    Raises:
        InvalidValueError: The screen would reject the value: a trace without box or category, a
            clip labelled as generated without any trace, or a rating without reasons.
    """
    results = list(iter_results(value, task, swapped=swapped))
    back = read_result(INTERFACE_OF[value.kind], results, task, swapped=swapped)
    if isinstance(back, QuarantinedSubmission):
        msg = f"no annotator could send this ({back}). Say what the screen asks for"
        raise InvalidValueError(msg)
    return results


def iter_results(value: Value, task: AnnotationTask, *, swapped: bool) -> Iterator[Result]:
    """Yield `value` as Label Studio results, without checking that all required answers are present."""
    match value:
        case ScreeningAnswer():
            yield _build_choice_result(
                AnnotationInterface.SCREENING, "keep", "keep" if value.keep else "remove"
            )
        case VoteAnswer():
            yield _build_choice_result(AnnotationInterface.REALITY, "reality", value.label.value)
        case PassFailAnswer():
            yield _build_choice_result(
                AnnotationInterface.PASS_FAIL, "passed", "pass" if value.passed else "fail"
            )
        case PreferenceAnswer():
            left = (value.better is Position.FIRST) is not swapped
            yield _build_choice_result(
                AnnotationInterface.PREFERENCE, "better", "left" if left else "right"
            )
        case RatingAnswer():
            yield from _write_rating(value.rating)
        case TraceAnswer():
            yield _build_choice_result(AnnotationInterface.TRACE, "verdict", _VERDICTS[value.label])
            for number, trace in enumerate(value.traces, 1):
                yield from _write_trace(trace, task.copies[0], f"trace-{number}")
        case _:
            assert_never(value)


def _write_rating(rating: Rating | None) -> Iterator[Result]:
    if rating is None:
        yield _build_choice_result(AnnotationInterface.REALISM, "discard", "discard")
        return
    yield _build_choice_result(AnnotationInterface.REALISM, "score", str(rating.score))
    for name, text in (("problem", rating.problem), ("adherence", rating.adherence)):
        if text:
            yield _build_result(AnnotationInterface.REALISM, name, {"text": [text]})
    if rating.family is not None:
        yield _build_choice_result(AnnotationInterface.REALISM, "family", rating.family.value)


def _write_trace(trace: Trace, copy: ClipCopy, region: str) -> Iterator[Result]:
    place = {
        "framesCount": copy.n_frames,
        "duration": copy.duration_us / 1e6,
        "sequence": [_build_key_frame_entry(key, copy) for key in write_track(trace, copy)],
    }
    marks = {"labels": sorted(get_box_labels(AnnotationInterface.TRACE))}
    yield _build_result(AnnotationInterface.TRACE, "box", place | marks, region)
    if trace.categories:
        words = {"choices": sorted(category.value for category in trace.categories)}
        yield _build_result(AnnotationInterface.TRACE, "category", place | words, region)
    if trace.explanation:
        text = {"text": [trace.explanation]}
        yield _build_result(AnnotationInterface.TRACE, "explanation", place | text, region)


def _build_key_frame_entry(key: KeyFrame, copy: ClipCopy) -> dict[str, float]:
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


def _build_choice_result(interface: AnnotationInterface, name: str, word: str) -> Result:
    return _build_result(interface, name, {"choices": [word]})


def _build_result(
    interface: AnnotationInterface, name: str, value: dict[str, Any], region: str | None = None
) -> Result:
    control = get_controls(interface)[name]
    return {
        "id": region or name,
        "from_name": name,
        "to_name": control.about,
        "type": control.kind,
        "origin": "manual",
        "value": value,
    }
