"""Annotation screens, the tasks of Label Studio for them, and parsers of the submitted results."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from itertools import pairwise
from types import MappingProxyType
from typing import Any, NoReturn, assert_never
from xml.etree import ElementTree as ET
from xml.sax.saxutils import quoteattr

from unreel.annotation.campaign import (
    AnnotationInterface,
    AnnotationTask,
    AnnotatorClipCopy,
    PassFailAnswer,
    PreferenceAnswer,
    QuarantineReason,
    RatingAnswer,
    ScreeningAnswer,
    SubmissionQuarantine,
    TaskAssignment,
    TraceAnswer,
    Value,
    VoteAnswer,
)
from unreel.core.box import Box
from unreel.core.content_ids import digest
from unreel.core.errors import InvalidSettingError, InvalidValueError
from unreel.core.judgement import ErrorFamily, Label, Rating
from unreel.core.safe_text import sanitise_line, sanitise_lines
from unreel.core.span import MICROSECONDS, TimeSpan
from unreel.core.trace import BoxAt, Category, Trace
from unreel.core.verdict import Position


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenKeyFrame:
    """Key frame of a moving box on an annotation screen of Label Studio."""

    frame: int
    """Number of the frame, from 1."""
    box: Box
    enabled: bool
    """Whether the box is visible on the frame after this one."""


def convert_key_frames_to_traces(
    keys: Sequence[ScreenKeyFrame],
    copy: AnnotatorClipCopy,
    *,
    categories: frozenset[Category] = frozenset(),
    explanation: str = "",
) -> tuple[Trace, ...]:
    """Return the traces that a moving box means: one for each range of frames that show the box."""
    runs: list[list[ScreenKeyFrame]] = []
    for key in keys:
        if not runs or not runs[-1][-1].enabled:
            runs.append([])
        runs[-1].append(key)
    traces = []
    for run in runs:
        last = copy.n_frames if run[-1].enabled else run[-1].frame  # from 1
        traces.append(
            Trace(
                span=TimeSpan(copy.at_us(run[0].frame - 1), copy.at_us(last)),
                track=tuple(BoxAt(copy.at_us(key.frame - 1), key.box) for key in run),
                categories=categories,
                explanation=explanation,
            )
        )
    return tuple(traces)


def convert_trace_to_key_frames(
    trace: Trace, copy: AnnotatorClipCopy
) -> tuple[ScreenKeyFrame, ...]:
    """Return the key frames of a box that shows a trace on every frame of its span and on no other."""
    if not trace.track:
        raise InvalidValueError(
            "a trace without a box cannot be shown on a screen. Leave it out, or mark its place"
        )
    boxes: dict[int, Box] = {}
    for mark in trace.track:
        boxes.setdefault(copy.frame_at(mark.at_us) + 1, mark.box)
    first = copy.frame_at(trace.span.start_us) + 1
    last = max(copy.frame_at(trace.span.end_us - 1) + 1, *boxes)
    boxes.setdefault(first, trace.track[0].box)
    if last < copy.n_frames:
        boxes.setdefault(last, boxes[max(boxes)])
    return tuple(
        ScreenKeyFrame(
            frame=frame, box=boxes[frame], enabled=frame != last or last == copy.n_frames
        )
        for frame in sorted(boxes)
    )


LONGEST_QUESTION = 300
_QUESTION = '"QUESTION"'
_KINDS = {
    "Choices": "choices",
    "TextArea": "textarea",
    "TimelineLabels": "timelinelabels",
    "VideoRectangle": "videorectangle",
}
_REGIONS = ("TimelineLabels", "VideoRectangle")
"""Elements whose results are regions: segments on the timeline, and boxes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenControl:
    """Input element of an annotation screen: a choice, a text field, a segment or a box."""

    name: str
    about: str
    """Name of the video element to which the control belongs."""
    kind: str
    """Type of the control's results: `choices`, `textarea`, `timelinelabels` or `videorectangle`."""
    per_region: bool
    several: bool
    """Whether more than one choice may be selected."""
    words: frozenset[str]
    """Allowed choices; empty for texts and boxes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotationScreen:
    """Annotation screen of one question: Label Studio configuration, guidelines and hotkeys."""

    interface: AnnotationInterface
    config: str
    """Label configuration of Label Studio, in XML."""
    guidelines: str
    """Default guidelines, shown before the first task: HTML without external images."""
    hotkeys: Mapping[str, str]
    """Choice that each key selects, by key."""

    @property
    def version(self) -> str:
        """Return a hash of the label configuration; any change of the text changes the version."""
        return digest("screen", self.config)[:12]


def get_annotation_screen(
    interface: AnnotationInterface, *, question: str = ""
) -> AnnotationScreen:
    """Return the annotation screen of an interface; only `pass-fail` takes a `question`."""
    if interface is AnnotationInterface.PASS_FAIL:
        if not question.strip() or len(question) > LONGEST_QUESTION:
            raise InvalidSettingError(
                "question",
                f"must have 1 to {LONGEST_QUESTION} characters, got {len(question)}",
                "Give a question that can be answered with yes or no",
            )
        # Label Studio replaces a word after `$` with the value of that name in the task's data.
        if "$" in question or sanitise_line(question) != question:
            raise InvalidSettingError(
                "question",
                f"a screen cannot show {question!a}",
                "Write plain words on one line, without `$`",
            )
    elif question:
        raise InvalidSettingError(
            "question",
            f"the screen {interface.value} asks its own question",
            "Leave it out, or use pass-fail",
        )
    config = _read_package_file("configs", f"{interface.value}.xml").replace(
        _QUESTION, quoteattr(question)
    )
    hotkeys = {
        tag.attrib["hotkey"]: tag.get("alias", tag.attrib["value"])
        for tag in _parse_screen_config(config).iter()
        if "hotkey" in tag.attrib
    }
    return AnnotationScreen(
        interface=interface,
        config=config,
        guidelines=_read_package_file("guidelines", f"{interface.value}.html"),
        hotkeys=MappingProxyType(hotkeys),
    )


@cache
def get_screen_controls(interface: AnnotationInterface) -> Mapping[str, ScreenControl]:
    """Return the input controls of the annotation screen of an interface, by name."""
    tree = _parse_screen_config(_read_package_file("configs", f"{interface.value}.xml"))
    controls = {}
    for tag in tree.iter():
        if tag.tag in _KINDS:
            choices = (choice.get("alias", choice.attrib["value"]) for choice in tag.iter("Choice"))
            controls[tag.attrib["name"]] = ScreenControl(
                name=tag.attrib["name"],
                about=tag.attrib["toName"],
                kind=_KINDS[tag.tag],
                per_region=tag.tag in _REGIONS or tag.get("perRegion") == "true",
                several=tag.get("choice") == "multiple",
                words=frozenset(choices),
            )
    return MappingProxyType(controls)


@cache
def get_box_labels(interface: AnnotationInterface) -> frozenset[str]:
    """Return the labels that a box or segment may have on the annotation screen of an interface."""
    tree = _parse_screen_config(_read_package_file("configs", f"{interface.value}.xml"))
    return frozenset(tag.attrib["value"] for tag in tree.iter("Label"))


def _parse_screen_config(config: str) -> ET.Element:
    return ET.fromstring(config)  # noqa: S314  a file of ours


@cache
def _read_package_file(folder: str, name: str) -> str:
    return files("unreel.annotation.interfaces").joinpath(folder, name).read_text(encoding="utf-8")


MAX_RESULTS = 2_000
LONGEST_TEXT = 20_000
MAX_LINES = 200
_LONGEST_DETAIL = 80
_RELATION = "relation"
_LONGEST_ID = 200

Answers = Mapping[str, dict[str, Any]]
"""Value of each answered control, by control name."""


class InvalidSubmissionError(InvalidValueError):
    """Error for a submission that is not a valid judgement; `quarantined` contains the reason."""

    def __init__(self, reason: QuarantineReason, detail: str) -> None:
        self.quarantined = SubmissionQuarantine(reason, detail)
        super().__init__(str(self.quarantined))


def _reject(reason: QuarantineReason, detail: str) -> NoReturn:
    """Raise an `InvalidSubmissionError` with the reason for the quarantine."""
    raise InvalidSubmissionError(reason, detail)


def _shorten(value: object) -> str:
    """Format an untrusted value for a message: escaped and shortened."""
    text = ascii(value[:_LONGEST_DETAIL]) if isinstance(value, str) else type(value).__name__
    return text[:_LONGEST_DETAIL]


def _parse_results_by_control(
    results: object, controls: Mapping[str, ScreenControl]
) -> tuple[Answers, dict[str, dict[str, dict[str, Any]]]]:
    """Validate an annotation's list of results; return the answers about the clip, and about each box.

    Boxes are in the order of the first occurrence of their region ids.
    """
    if not isinstance(results, list):
        _reject(QuarantineReason.MALFORMED, f"no list of results but {_shorten(results)}")
    if len(results) > MAX_RESULTS:
        _reject(QuarantineReason.TOO_LARGE, f"{len(results)} results, more than {MAX_RESULTS}")
    answers: dict[str, dict[str, Any]] = {}
    regions: dict[str, dict[str, dict[str, Any]]] = {}
    for result in results:
        if isinstance(result, dict) and result.get("type") == _RELATION:
            continue  # relations between boxes, which no screen requires and no answer uses
        control, value = _parse_control_value(result, controls)
        group = answers
        if control.per_region:
            region = result.get("id")
            if not isinstance(region, str) or not 0 < len(region) <= _LONGEST_ID:
                _reject(QuarantineReason.MALFORMED, f"a box's id is {_shorten(region)}")
            group = regions.setdefault(region, {})
        if control.name in group:
            _reject(QuarantineReason.MALFORMED, f"{control.name} is answered twice")
        group[control.name] = value
    return answers, regions


def get_selected_choices(answers: Answers, control: ScreenControl) -> tuple[str, ...]:
    """Return the choices that the annotator selected in a control; empty if there are none."""
    choices = answers.get(control.name, {}).get("choices", [])
    if not isinstance(choices, list) or not all(isinstance(choice, str) for choice in choices):
        _reject(QuarantineReason.MALFORMED, f"{control.name} holds no list of words")
    unknown = [choice for choice in choices if choice not in control.words]
    if unknown:
        detail = f"{control.name} knows no {_shorten(unknown[0])}"
        _reject(QuarantineReason.UNKNOWN_WORD, detail)
    if len(set(choices)) < len(choices):
        _reject(QuarantineReason.MALFORMED, f"{control.name} names a word twice")
    if len(choices) > 1 and not control.several:
        _reject(QuarantineReason.CONTRADICTORY, f"{control.name} has {len(choices)} answers")
    return tuple(choices)


def get_entered_text(answers: Answers, control: ScreenControl) -> str:
    """Return the text entered in a control without control characters; "" if there is none."""
    text = answers.get(control.name, {}).get("text", [])
    lines = [text] if isinstance(text, str) else text
    if isinstance(lines, list) and len(lines) > MAX_LINES:
        _reject(QuarantineReason.TOO_LARGE, f"{control.name} has {len(lines)} texts")
    if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
        _reject(QuarantineReason.MALFORMED, f"{control.name} holds no text")
    if sum(map(len, lines)) > LONGEST_TEXT:
        _reject(QuarantineReason.TOO_LARGE, f"{control.name} is longer than {LONGEST_TEXT}")
    return sanitise_lines("\n".join(lines)).strip()


def _parse_control_value(
    result: object, controls: Mapping[str, ScreenControl]
) -> tuple[ScreenControl, dict[str, Any]]:
    if not isinstance(result, dict):
        _reject(QuarantineReason.MALFORMED, f"a result is {_shorten(result)}")
    name = result.get("from_name")
    control = controls.get(name) if isinstance(name, str) else None
    if control is None:
        _reject(QuarantineReason.UNKNOWN_WORD, f"the screen does not ask {_shorten(name)}")
    if result.get("to_name") != control.about:
        detail = f"{control.name} is about {_shorten(result.get('to_name'))}"
        _reject(QuarantineReason.UNKNOWN_WORD, detail)
    value = result.get("value")
    if result.get("type") != control.kind or not isinstance(value, dict):
        _reject(QuarantineReason.MALFORMED, f"{control.name} holds no {control.kind}")
    return control, value


MAX_BOXES = 200
MAX_KEY_FRAMES = 20_000
"""Maximum number of key frames of all boxes together."""
_FARTHEST = 1_000.0
"""Maximum absolute coordinate or side of a box in percent of the picture; a box may extend over the edge."""
_SQUARE_DEG = 0.01


def parse_judgement(
    interface: AnnotationInterface, results: object, task: AnnotationTask, *, swapped: bool
) -> Value | SubmissionQuarantine:
    """Parse a judgement from the results of a Label Studio annotation; quarantine invalid results.

    `swapped` means that a pair's second clip was on the left.
    """
    controls = get_screen_controls(interface)
    try:
        answers, regions = _parse_results_by_control(results, controls)

        def choose(name: str) -> str:
            choices = get_selected_choices(answers, controls[name])
            if not choices:
                _reject(QuarantineReason.MISSING, f"{name} is not answered")
            return choices[0]

        match interface:
            case AnnotationInterface.SCREENING:
                return ScreeningAnswer(keep=choose("keep") == "keep")
            case AnnotationInterface.REALITY:
                return VoteAnswer(label=Label(choose("reality")))
            case AnnotationInterface.PASS_FAIL:
                return PassFailAnswer(passed=choose("passed") == "pass")
            case AnnotationInterface.PREFERENCE:
                is_first = (choose("better") == "left") is not swapped
                return PreferenceAnswer(better=Position.FIRST if is_first else Position.SECOND)
            case AnnotationInterface.REALISM:
                # A clip that was scored and then discarded still has its score, which the screen hides.
                if get_selected_choices(answers, controls["discard"]):
                    return RatingAnswer(rating=None)
                return _parse_rating_answer(int(choose("score")), answers, controls)
            case AnnotationInterface.TRACE | AnnotationInterface.LOCATE:
                label = _VERDICTS[choose("verdict")]
                return _parse_trace_answer(interface, label, regions, controls, task.copies[0])
            case _ as never:
                assert_never(never)
    except InvalidSubmissionError as error:
        return error.quarantined


def _parse_rating_answer(
    score: int, answers: Answers, controls: Mapping[str, ScreenControl]
) -> RatingAnswer:
    texts = {name: get_entered_text(answers, controls[name]) for name in ("problem", "adherence")}
    for name, text in texts.items():
        if not text:
            _reject(QuarantineReason.MISSING, f"{name} is not answered")
    family = get_selected_choices(answers, controls["family"])
    error_family = ErrorFamily(family[0]) if family else None
    return RatingAnswer(rating=Rating(score=score, **texts, family=error_family))


_VERDICTS: Mapping[str, Label | None] = {
    "traces": Label.GENERATED,
    "looks-real": Label.REAL,
    "cannot-tell": None,
}


def _parse_trace_answer(
    interface: AnnotationInterface,
    label: Label | None,
    regions: Mapping[str, Answers],
    controls: Mapping[str, ScreenControl],
    copy: AnnotatorClipCopy,
) -> TraceAnswer:
    if len(regions) > MAX_BOXES:
        _reject(QuarantineReason.TOO_LARGE, f"{len(regions)} boxes, more than {MAX_BOXES}")
    sequences = [answers.get("box", {}).get("sequence") for answers in regions.values()]
    n_keys = sum(len(sequence) for sequence in sequences if isinstance(sequence, list))
    if n_keys > MAX_KEY_FRAMES:
        _reject(QuarantineReason.TOO_LARGE, f"{n_keys} key frames, more than {MAX_KEY_FRAMES}")
    known = get_box_labels(interface)
    boxes: list[Trace] = []
    segments: list[Trace] = []
    for answers in regions.values():
        region = answers.get("segment", answers.get("box"))
        if region is None or {"segment", "box"} <= answers.keys():
            detail = f"{_shorten(next(iter(answers)))} is about a box that is not there"
            _reject(QuarantineReason.MALFORMED, detail)
        words = region.get("timelinelabels" if "segment" in answers else "labels", [])
        if not isinstance(words, list) or len(words) > len(known):
            _reject(QuarantineReason.MALFORMED, "labels of a box must be a list of words")
        for word in words:
            if not isinstance(word, str) or word not in known:
                _reject(QuarantineReason.UNKNOWN_WORD, f"a box is called {_shorten(word)}")
        choices = get_selected_choices(answers, controls["category"])
        if not choices:
            _reject(QuarantineReason.MISSING, "a box or a segment has no category")
        categories = frozenset(map(Category, choices))
        explanation = get_entered_text(answers, controls["explanation"])
        if "segment" in answers:
            span = _parse_segment(region.get("ranges"), copy)
            segments.append(Trace(span=span, categories=categories, explanation=explanation))
        else:
            keys = _parse_key_frames(region.get("sequence"), copy)
            boxes += convert_key_frames_to_traces(
                keys, copy, categories=categories, explanation=explanation
            )
    traces = boxes if interface is AnnotationInterface.TRACE else _add_boxes(segments, boxes)
    if bool(traces) is not (label is Label.GENERATED):
        claim = "some" if label is Label.GENERATED else "none"
        detail = f"{len(traces)} traces in a clip marked as having {claim}"
        _reject(QuarantineReason.CONTRADICTORY, detail)
    return TraceAnswer(traces=tuple(traces), label=label)


def _parse_segment(ranges: object, copy: AnnotatorClipCopy) -> TimeSpan:
    """Return the time span of a segment on the timeline: frames count from 1, the last one included."""
    frames = ranges[0] if isinstance(ranges, list) and len(ranges) == 1 else None
    if not isinstance(frames, dict):
        _reject(QuarantineReason.MALFORMED, "a segment must have one range of frames")
    start, end = frames.get("start"), frames.get("end")
    if type(start) is not int or type(end) is not int:
        _reject(QuarantineReason.MALFORMED, "a segment has no first or last frame")
    if not 1 <= start <= end <= copy.n_frames:
        detail = f"a segment of frames {start} to {end} in a clip of {copy.n_frames} frames"
        _reject(QuarantineReason.OUT_OF_RANGE, detail)
    return TimeSpan(copy.at_us(start - 1), copy.at_us(end))


def _add_boxes(segments: Sequence[Trace], boxes: Sequence[Trace]) -> list[Trace]:
    """Return the segments with the boxes that begin in them; a box outside every segment is rejected."""
    located = list(segments)
    for box in sorted(boxes, key=lambda box: box.span):
        begins_us = box.span.start_us
        for number, segment in enumerate(located):
            if segment.span.start_us <= begins_us < segment.span.end_us and not segment.track:
                track = tuple(mark for mark in box.track if mark.at_us < segment.span.end_us)
                located[number] = replace(
                    segment, track=track, categories=segment.categories | box.categories
                )
                break
        else:
            _reject(QuarantineReason.CONTRADICTORY, "a box begins in no segment without a box")
    return sorted(located, key=lambda trace: trace.span)


def _parse_key_frames(sequence: object, copy: AnnotatorClipCopy) -> list[ScreenKeyFrame]:
    if not isinstance(sequence, list) or not sequence:
        _reject(QuarantineReason.MALFORMED, "a box without key frames")
    if len(sequence) > copy.n_frames:
        detail = f"{len(sequence)} key frames in a clip of {copy.n_frames} frames"
        _reject(QuarantineReason.TOO_LARGE, detail)
    keys = [_parse_key_frame(entry, copy) for entry in sequence]
    if any(left.frame >= right.frame for left, right in pairwise(keys)):
        _reject(QuarantineReason.MALFORMED, "key frames out of order, or two for one frame")
    return keys


def _parse_key_frame(entry: object, copy: AnnotatorClipCopy) -> ScreenKeyFrame:
    if not isinstance(entry, dict):
        _reject(QuarantineReason.MALFORMED, f"a key frame is {_shorten(entry)}")
    frame, enabled = entry.get("frame"), entry.get("enabled")
    if type(frame) is not int or type(enabled) is not bool:
        _reject(QuarantineReason.MALFORMED, "a key frame without number or without visibility")
    if not 1 <= frame <= copy.n_frames:
        detail = f"a key frame is outside the clip's {copy.n_frames} frames"
        _reject(QuarantineReason.OUT_OF_RANGE, detail)
    turn = _parse_box_number(entry, "rotation", default=0.0) % 360
    if min(turn, 360 - turn) > _SQUARE_DEG:
        _reject(QuarantineReason.OUT_OF_RANGE, f"the box on frame {frame} is turned")
    x, y, width, height = (_parse_box_number(entry, side) for side in ("x", "y", "width", "height"))
    corners = (x / 100, y / 100, (x + width) / 100, (y + height) / 100)
    x0, y0, x1, y1 = (min(1.0, max(0.0, corner)) for corner in corners)
    try:
        box = Box(x0, y0, x1, y1)
    except InvalidValueError:
        detail = f"nothing of the box on frame {frame} is in the picture"
        _reject(QuarantineReason.OUT_OF_RANGE, detail)
    return ScreenKeyFrame(frame=frame, box=box, enabled=enabled)


def _parse_box_number(entry: dict[str, Any], side: str, *, default: float | None = None) -> float:
    number = entry.get(side, default)
    if isinstance(number, bool) or not isinstance(number, int | float):
        _reject(QuarantineReason.MALFORMED, f"a box's {side} is {_shorten(number)}")
    if not -_FARTHEST <= number <= _FARTHEST:  # also rejects NaN
        _reject(QuarantineReason.OUT_OF_RANGE, f"a box's {side} is beyond {_FARTHEST:.0f} %")
    return float(number)


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
_VERDICT_OF_LABEL = {label: verdict for verdict, label in _VERDICTS.items()}


def build_label_studio_results(
    value: Value,
    task: AnnotationTask,
    *,
    swapped: bool,
    interface: AnnotationInterface | None = None,
) -> list[Result]:
    """Return a judgement as Label Studio results; `parse_judgement` is the inverse.

    The `interface` decides between `trace`, the default, and `locate`, whose answers are of one type.
    """
    interface = interface or INTERFACE_OF[value.kind]
    results = list(iter_label_studio_results(value, task, swapped=swapped, interface=interface))
    back = parse_judgement(interface, results, task, swapped=swapped)
    if isinstance(back, SubmissionQuarantine):
        raise InvalidValueError(
            f"no annotator could send this ({back}). Give an answer that the screen allows"
        )
    return results


def iter_label_studio_results(
    value: Value, task: AnnotationTask, *, swapped: bool, interface: AnnotationInterface
) -> Iterator[Result]:
    """Yield an annotator's answer as Label Studio results, even if required answers are missing."""
    realism = AnnotationInterface.REALISM
    match value:
        case ScreeningAnswer():
            word = "keep" if value.keep else "remove"
            yield _build_choice_result(AnnotationInterface.SCREENING, "keep", word)
        case VoteAnswer():
            yield _build_choice_result(AnnotationInterface.REALITY, "reality", value.label.value)
        case PassFailAnswer():
            word = "pass" if value.passed else "fail"
            yield _build_choice_result(AnnotationInterface.PASS_FAIL, "passed", word)
        case PreferenceAnswer():
            word = "left" if (value.better is Position.FIRST) is not swapped else "right"
            yield _build_choice_result(AnnotationInterface.PREFERENCE, "better", word)
        case RatingAnswer():
            rating = value.rating
            if rating is None:
                yield _build_choice_result(realism, "discard", "discard")
                return
            yield _build_choice_result(realism, "score", str(rating.score))
            for name, text in (("problem", rating.problem), ("adherence", rating.adherence)):
                if text:
                    yield _build_result(realism, name, {"text": [text]})
            if rating.family is not None:
                yield _build_choice_result(realism, "family", rating.family.value)
        case TraceAnswer():
            verdict, copy = _VERDICT_OF_LABEL[value.label], task.copies[0]
            yield _build_choice_result(interface, "verdict", verdict)
            for number, trace in enumerate(value.traces, 1):
                regions = {f"trace-{number}": "box"}
                if interface is AnnotationInterface.LOCATE:
                    regions = {f"segment-{number}": "segment"}
                    regions |= {f"trace-{number}": "box"} if trace.track else {}
                for region, control in regions.items():
                    yield from _iter_region_results(interface, trace, copy, region, control)
        case _:
            assert_never(value)


def _iter_region_results(
    interface: AnnotationInterface, trace: Trace, copy: AnnotatorClipCopy, region: str, control: str
) -> Iterator[Result]:
    """Yield the results of a trace as a region of the screen, drawn with `control`."""
    labels = sorted(get_box_labels(interface))
    entries: dict[str, dict[str, Any]] = {}
    if control == "segment":
        first = copy.frame_at(trace.span.start_us) + 1
        last = copy.frame_at(trace.span.end_us - 1) + 1
        place: dict[str, Any] = {"ranges": [{"start": first, "end": last}]}
        entries[control] = {"timelinelabels": labels}
    else:
        keys = convert_trace_to_key_frames(trace, copy)
        place = {
            "framesCount": copy.n_frames,
            "duration": copy.duration_us / MICROSECONDS,
            "sequence": [_build_key_frame_entry(key, copy) for key in keys],
        }
        entries[control] = {"labels": labels}
    if trace.categories:
        choices = sorted(category.value for category in trace.categories)
        entries["category"] = {"choices": choices}
    if trace.explanation:
        entries["explanation"] = {"text": [trace.explanation]}
    for name, entry in entries.items():
        yield _build_result(interface, name, place | entry, region)


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


def build_prefilled_results(
    task: AnnotationTask, interface: AnnotationInterface, *, swapped: bool
) -> list[Result]:
    """Return the earlier annotation as Label Studio results that prefill the screen.

    The screen `trace` shows no trace without a box.
    """
    value = task.prefill
    if value is None:
        return []
    if isinstance(value, TraceAnswer) and interface is AnnotationInterface.TRACE:
        placed = tuple(trace for trace in value.traces if trace.track)
        value = TraceAnswer(traces=placed, label=value.label)
    return list(iter_label_studio_results(value, task, swapped=swapped, interface=interface))


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
    """Return the field `data` of a Label Studio task: clip URLs, frame rates, task id and position."""
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
        # The digits that the player needs to locate every frame.
        data[rate_key] = f"{float(copy.rate):.12f}".rstrip("0").rstrip(".")
    return data
