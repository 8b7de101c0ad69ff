"""Data of Label Studio tasks without hints at the answer, and annotations as Label Studio results."""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, assert_never

from unreel.annotation.campaign import (
    AnnotationInterface,
    AnnotationTask,
    AnnotatorClipCopy,
    TaskAssignment,
)
from unreel.annotation.interfaces.judgement_parser import parse_judgement
from unreel.annotation.interfaces.screens import (
    AnnotationScreen,
    ScreenKeyFrame,
    convert_trace_to_key_frames,
    get_box_labels,
    get_screen_controls,
)
from unreel.annotation.judgements import (
    PassFailAnswer,
    PreferenceAnswer,
    RatingAnswer,
    ScreeningAnswer,
    SubmissionQuarantine,
    TraceAnswer,
    Value,
    VoteAnswer,
)
from unreel.core.errors import InvalidValueError
from unreel.core.judgement import Label, Rating
from unreel.core.span import MICROSECONDS
from unreel.core.verdict import Position

Result = dict[str, Any]

INTERFACE_OF: Mapping[str, AnnotationInterface] = {
    "screened": AnnotationInterface.SCREENING,
    "traced": AnnotationInterface.TRACE,
    "rated": AnnotationInterface.REALISM,
    "preferred": AnnotationInterface.PREFERENCE,
    "voted": AnnotationInterface.REALITY,
    "passed": AnnotationInterface.PASS_FAIL,
}
"""Interface of each kind of answer."""
_VERDICTS = {Label.GENERATED: "traces", Label.REAL: "looks-real", None: "cannot-tell"}


def build_label_studio_results(
    value: Value, task: AnnotationTask, *, swapped: bool
) -> list[Result]:
    """Return a judgement as Label Studio results; `parse_judgement` is the inverse."""
    results = list(iter_label_studio_results(value, task, swapped=swapped))
    back = parse_judgement(INTERFACE_OF[value.kind], results, task, swapped=swapped)
    if isinstance(back, SubmissionQuarantine):
        raise InvalidValueError(
            f"no annotator could send this ({back}). Give an answer that the screen allows"
        )
    return results


def iter_label_studio_results(
    value: Value, task: AnnotationTask, *, swapped: bool
) -> Iterator[Result]:
    """Yield an annotator's answer as Label Studio results, even if required answers are missing."""
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
            yield from _iter_rating_results(value.rating)
        case TraceAnswer():
            yield _build_choice_result(AnnotationInterface.TRACE, "verdict", _VERDICTS[value.label])
            for number, trace in enumerate(value.traces, 1):
                copy = task.copies[0]
                region = f"trace-{number}"
                region_value = {
                    "framesCount": copy.n_frames,
                    "duration": copy.duration_us / MICROSECONDS,
                    "sequence": [
                        _build_key_frame_entry(key, copy)
                        for key in convert_trace_to_key_frames(trace, copy)
                    ],
                }
                labels = {"labels": sorted(get_box_labels(AnnotationInterface.TRACE))}
                yield _build_result(AnnotationInterface.TRACE, "box", region_value | labels, region)
                if trace.categories:
                    choices = {"choices": sorted(category.value for category in trace.categories)}
                    yield _build_result(
                        AnnotationInterface.TRACE, "category", region_value | choices, region
                    )
                if trace.explanation:
                    text = {"text": [trace.explanation]}
                    yield _build_result(
                        AnnotationInterface.TRACE, "explanation", region_value | text, region
                    )
        case _:
            assert_never(value)


def _iter_rating_results(rating: Rating | None) -> Iterator[Result]:
    if rating is None:
        yield _build_choice_result(AnnotationInterface.REALISM, "discard", "discard")
        return
    yield _build_choice_result(AnnotationInterface.REALISM, "score", str(rating.score))
    for name, text in (("problem", rating.problem), ("adherence", rating.adherence)):
        if text:
            yield _build_result(AnnotationInterface.REALISM, name, {"text": [text]})
    if rating.family is not None:
        yield _build_choice_result(AnnotationInterface.REALISM, "family", rating.family.value)


def _build_key_frame_entry(key: ScreenKeyFrame, copy: AnnotatorClipCopy) -> dict[str, float]:
    box = key.box
    return {
        "frame": key.frame,
        "enabled": key.enabled,
        "rotation": 0,
        "x": box.x0 * 100,
        "y": box.y0 * 100,
        "width": (box.x1 - box.x0) * 100,
        "height": (box.y1 - box.y0) * 100,
        "time": float(key.frame / copy.rate),  # one frame late, as Label Studio writes it
    }


def _build_choice_result(interface: AnnotationInterface, name: str, word: str) -> Result:
    return _build_result(interface, name, {"choices": [word]})


def _build_result(
    interface: AnnotationInterface, name: str, value: dict[str, Any], region: str | None = None
) -> Result:
    control = get_screen_controls(interface)[name]
    return {
        "id": region or name,
        "from_name": name,
        "to_name": control.about,
        "type": control.kind,
        "origin": "manual",
        "value": value,
    }


def build_prefilled_results(task: AnnotationTask, *, swapped: bool) -> list[Result]:
    """Return the earlier annotation as Label Studio results that prefill the screen, without boxless traces."""
    value = task.prefill
    if value is None:
        return []
    if isinstance(value, TraceAnswer):
        placed = tuple(trace for trace in value.traces if trace.track)
        value = TraceAnswer(traces=placed, label=value.label)
    return list(iter_label_studio_results(value, task, swapped=swapped))


TASK_KEY = "unreel_task"
"""Key of the task id in the field `data` of a Label Studio task."""
POSITION_KEY = "position"
_PLACES: Mapping[int, tuple[tuple[str, str], ...]] = {
    1: (("video", "fps"),),
    2: (("left", "fps_left"), ("right", "fps_right")),
}


def build_label_studio_task_data(
    screen: AnnotationScreen, task: AnnotationTask, assignment: TaskAssignment, urls: Sequence[str]
) -> dict[str, str | int]:
    """Return the field `data` of a Label Studio task: clip URLs, frame rates, task id and position.

    Args:
        screen: Screen of the task.
        task: Clip or pair to judge.
        assignment: Annotator, and the order of the clips of a pair.
        urls: URLs of the task's copies for the browser, in the order of the task.
    """
    if not screen.interface.n_clips == len(task.copies) == len(urls):
        raise InvalidValueError(
            f"the screen {screen.interface.value} shows {screen.interface.n_clips} clip(s), "
            f"got {len(task.copies)} and {len(urls)} address(es). Use another interface"
        )
    clips = list(zip(task.copies, urls, strict=True))
    if assignment.swapped:
        clips.reverse()
    data: dict[str, str | int] = {TASK_KEY: task.id, POSITION_KEY: assignment.position + 1}
    for (key, rate_key), (copy, url) in zip(_PLACES[len(clips)], clips, strict=True):
        data[key] = url
        data[rate_key] = format_frame_rate(copy.rate)
    return data


def format_frame_rate(rate: Fraction) -> str:
    """Format frames per second with the digits that the player needs to locate every frame."""
    return f"{float(rate):.12f}".rstrip("0").rstrip(".")
