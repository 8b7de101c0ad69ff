"""Convert the results of an annotation into a judgement, or into the reason why it is none.

The server stores whatever it is sent, from a person's browser or from a script with her key. So
nothing is believed: a result is read whole, or quarantined whole.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from unreel.annotation.campaign import AnnotationInterface, AnnotationTask, ClipCopy
from unreel.annotation.interfaces.parsed_answers import (
    Answers,
    ParsedAnswers,
    RefusedError,
    cut,
    get_choices,
    get_text,
    refuse,
    require_choice,
    sort_out,
)
from unreel.annotation.interfaces.screens import ScreenControl, get_box_labels, get_controls
from unreel.annotation.interfaces.tracks import KeyFrame, read_track
from unreel.annotation.judgements import (
    PassFailAnswer,
    PreferenceAnswer,
    QuarantinedSubmission,
    QuarantineReason,
    RatingAnswer,
    ScreeningAnswer,
    TraceAnswer,
    Value,
    VoteAnswer,
)
from unreel.core.box import Box
from unreel.core.errors import InvalidValueError
from unreel.core.judgement import ErrorFamily, Label, Rating
from unreel.core.trace import Category, Trace
from unreel.core.verdict import Position

MOST_BOXES: Final = 200
MOST_KEY_FRAMES: Final = 20_000
"""Maximum number of key frames of all boxes together."""
_FARTHEST: Final = 1_000.0
"""Percent of the picture: a box may hang over its edge, but not lie in another town."""
_SQUARE_DEG: Final = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class _SubmittedAnnotation:
    """Submitted Label Studio annotation, grouped by control."""

    said: ParsedAnswers
    controls: Mapping[str, ScreenControl]
    task: AnnotationTask
    swapped: bool

    def one(self, name: str) -> str:
        return require_choice(self.said.whole, self.controls[name])


def read_result(
    interface: AnnotationInterface, results: object, task: AnnotationTask, *, swapped: bool
) -> Value | QuarantinedSubmission:
    """Parse the judgement in an annotation's list of results.

    Args:
        interface: Question of the annotator.
        results: The annotation's `result`, as sent by the server.
        task: Judged clip or pair.
        swapped: Whether a pair's second clip was on the left.
    """
    controls = get_controls(interface)
    try:
        said = sort_out(results, controls)
        sent = _SubmittedAnnotation(said=said, controls=controls, task=task, swapped=swapped)
        return _READERS[interface](sent)
    except RefusedError as error:
        return error.quarantined


def _parse_screening_answer(sent: _SubmittedAnnotation) -> ScreeningAnswer:
    return ScreeningAnswer(keep=sent.one("keep") == "keep")


def _parse_vote_answer(sent: _SubmittedAnnotation) -> VoteAnswer:
    return VoteAnswer(label=Label(sent.one("reality")))


def _parse_pass_fail_answer(sent: _SubmittedAnnotation) -> PassFailAnswer:
    return PassFailAnswer(passed=sent.one("passed") == "pass")


def _parse_preference_answer(sent: _SubmittedAnnotation) -> PreferenceAnswer:
    left = sent.one("better") == "left"
    return PreferenceAnswer(better=Position.FIRST if left is not sent.swapped else Position.SECOND)


def _parse_rating_answer(sent: _SubmittedAnnotation) -> RatingAnswer:
    whole, controls = sent.said.whole, sent.controls
    # A clip that was scored first and discarded then keeps its score on the screen: hidden, not meant.
    if get_choices(whole, controls["discard"]):
        return RatingAnswer(rating=None)
    score = int(sent.one("score"))
    texts = {name: get_text(whole, controls[name]) for name in ("problem", "adherence")}
    for name, text in texts.items():
        if not text:
            refuse(QuarantineReason.MISSING, f"{name} is not answered")
    family = get_choices(whole, controls["family"])
    return RatingAnswer(
        rating=Rating(
            score=score,
            problem=texts["problem"],
            adherence=texts["adherence"],
            family=ErrorFamily(family[0]) if family else None,
        )
    )


_VERDICTS: Final[Mapping[str, Label | None]] = {
    "traces": Label.GENERATED,
    "looks-real": Label.REAL,
    "cannot-tell": None,
}


def _parse_trace_answer(sent: _SubmittedAnnotation) -> TraceAnswer:
    label = _VERDICTS[sent.one("verdict")]
    regions = sent.said.regions
    if len(regions) > MOST_BOXES:
        refuse(QuarantineReason.TOO_LARGE, f"{len(regions)} boxes, more than {MOST_BOXES}")
    n_keys = sum(map(_count_key_frames, regions.values()))
    if n_keys > MOST_KEY_FRAMES:
        refuse(QuarantineReason.TOO_LARGE, f"{n_keys} key frames, more than {MOST_KEY_FRAMES}")
    traces = tuple(
        trace for answers in regions.values() for trace in _parse_box_traces(answers, sent)
    )
    if bool(traces) is not (label is Label.GENERATED):
        claim = "some" if label is Label.GENERATED else "none"
        detail = f"{len(traces)} traces in a clip that is said to have {claim}"
        refuse(QuarantineReason.CONTRADICTORY, detail)
    return TraceAnswer(traces=traces, label=label)


_READERS: Final[Mapping[AnnotationInterface, Callable[[_SubmittedAnnotation], Value]]] = {
    AnnotationInterface.SCREENING: _parse_screening_answer,
    AnnotationInterface.TRACE: _parse_trace_answer,
    AnnotationInterface.REALISM: _parse_rating_answer,
    AnnotationInterface.PREFERENCE: _parse_preference_answer,
    AnnotationInterface.REALITY: _parse_vote_answer,
    AnnotationInterface.PASS_FAIL: _parse_pass_fail_answer,
}


def _parse_box_traces(answers: Answers, sent: _SubmittedAnnotation) -> tuple[Trace, ...]:
    """Parse the traces of one box."""
    if "box" not in answers:
        detail = f"{cut(next(iter(answers)))} is about a box that is not there"
        refuse(QuarantineReason.MALFORMED, detail)
    copy = sent.task.copies[0]
    _require_marks(answers["box"].get("labels", []))
    keys = _parse_key_frames(answers["box"].get("sequence"), copy)
    categories = get_choices(answers, sent.controls["category"])
    if not categories:
        refuse(QuarantineReason.MISSING, "a box has no category")
    return read_track(
        keys,
        copy,
        categories=frozenset(map(Category, categories)),
        explanation=get_text(answers, sent.controls["explanation"]),
    )


def _count_key_frames(answers: Answers) -> int:
    sequence = answers.get("box", {}).get("sequence")
    return len(sequence) if isinstance(sequence, list) else 0


def _require_marks(labels: object) -> None:
    known = get_box_labels(AnnotationInterface.TRACE)
    if not isinstance(labels, list) or len(labels) > len(known):
        refuse(QuarantineReason.MALFORMED, "a box's labels are no list of words")
    for label in labels:
        if not isinstance(label, str) or label not in known:
            refuse(QuarantineReason.UNKNOWN_WORD, f"a box is called {cut(label)}")


def _parse_key_frames(sequence: object, copy: ClipCopy) -> list[KeyFrame]:
    if not isinstance(sequence, list) or not sequence:
        refuse(QuarantineReason.MALFORMED, "a box without key frames")
    if len(sequence) > copy.n_frames:
        detail = f"{len(sequence)} key frames in a clip of {copy.n_frames} frames"
        refuse(QuarantineReason.TOO_LARGE, detail)
    keys = [_parse_key_frame(entry, copy) for entry in sequence]
    if any(left.frame >= right.frame for left, right in pairwise(keys)):
        refuse(QuarantineReason.MALFORMED, "key frames out of order, or two for one frame")
    return keys


def _parse_key_frame(entry: object, copy: ClipCopy) -> KeyFrame:
    if not isinstance(entry, dict):
        refuse(QuarantineReason.MALFORMED, f"a key frame is {cut(entry)}")
    frame, enabled = entry.get("frame"), entry.get("enabled")
    if type(frame) is not int or type(enabled) is not bool:
        refuse(QuarantineReason.MALFORMED, "a key frame without number or without visibility")
    if not 1 <= frame <= copy.n_frames:
        detail = f"a key frame is outside the clip's {copy.n_frames} frames"
        refuse(QuarantineReason.OUT_OF_RANGE, detail)
    turn = _parse_box_number(entry, "rotation", default=0.0) % 360
    if min(turn, 360 - turn) > _SQUARE_DEG:
        refuse(QuarantineReason.OUT_OF_RANGE, f"the box on frame {frame} is turned")
    return KeyFrame(frame=frame, box=_parse_clipped_box(entry, frame), enabled=enabled)


def _parse_clipped_box(entry: dict[str, Any], frame: int) -> Box:
    """Return the box clipped to the picture."""
    x, y, width, height = (_parse_box_number(entry, side) for side in ("x", "y", "width", "height"))
    corners = (x / 100, y / 100, (x + width) / 100, (y + height) / 100)
    x0, y0, x1, y1 = (min(1.0, max(0.0, corner)) for corner in corners)
    try:
        return Box(x0, y0, x1, y1)
    except InvalidValueError:
        refuse(
            QuarantineReason.OUT_OF_RANGE, f"nothing of the box on frame {frame} is in the picture"
        )


def _parse_box_number(entry: dict[str, Any], side: str, *, default: float | None = None) -> float:
    found = entry.get(side, default)
    if isinstance(found, bool) or not isinstance(found, int | float):
        refuse(QuarantineReason.MALFORMED, f"a box's {side} is {cut(found)}")
    if not -_FARTHEST <= found <= _FARTHEST:  # nor what is no number
        refuse(QuarantineReason.OUT_OF_RANGE, f"a box's {side} is beyond {_FARTHEST:.0f} %")
    return float(found)
