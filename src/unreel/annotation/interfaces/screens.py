"""The six annotation screens: Label Studio configurations, allowed answers, and moving boxes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from xml.etree import ElementTree as ET
from xml.sax.saxutils import quoteattr

from unreel.annotation.campaign import AnnotationInterface, AnnotatorClipCopy
from unreel.core.box import Box
from unreel.core.content_ids import digest
from unreel.core.errors import InvalidSettingError, InvalidValueError
from unreel.core.safe_text import sanitise_line
from unreel.core.span import TimeSpan
from unreel.core.trace import BoxAt, Category, Trace


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
    return tuple(
        Trace(
            span=TimeSpan(copy.at_us(run[0].frame - 1), copy.at_us(_get_last_frame(run, copy))),
            track=tuple(BoxAt(copy.at_us(key.frame - 1), key.box) for key in run),
            categories=categories,
            explanation=explanation,
        )
        for run in _iter_visible_runs(keys)
    )


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


def _iter_visible_runs(keys: Sequence[ScreenKeyFrame]) -> Iterator[list[ScreenKeyFrame]]:
    run: list[ScreenKeyFrame] = []
    for key in keys:
        run.append(key)
        if not key.enabled:
            yield run
            run = []
    if run:
        yield run


def _get_last_frame(run: Sequence[ScreenKeyFrame], copy: AnnotatorClipCopy) -> int:
    """Return the last frame (from 1) on which a box of the continuous range `run` is visible."""
    return copy.n_frames if run[-1].enabled else run[-1].frame


LONGEST_QUESTION = 300
_QUESTION = '"QUESTION"'
_KINDS = {"Choices": "choices", "TextArea": "textarea", "VideoRectangle": "videorectangle"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenControl:
    """Input element of an annotation screen: a choice, a text field or a box."""

    name: str
    about: str
    """Name of the video element to which the control belongs."""
    kind: str
    """Type of the control's results: `choices`, `textarea` or `videorectangle`."""
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
    _require_valid_question(interface, question)
    config = _read_package_file("configs", f"{interface.value}.xml").replace(
        _QUESTION, quoteattr(question)
    )
    return AnnotationScreen(
        interface=interface,
        config=config,
        guidelines=_read_package_file("guidelines", f"{interface.value}.html"),
        hotkeys=MappingProxyType(
            {
                tag.attrib["hotkey"]: tag.get("alias", tag.attrib["value"])
                for tag in _parse_screen_config(config).iter()
                if "hotkey" in tag.attrib
            }
        ),
    )


@cache
def get_screen_controls(interface: AnnotationInterface) -> Mapping[str, ScreenControl]:
    """Return the input controls of the annotation screen of an interface, by name."""
    tree = _parse_screen_config(_read_package_file("configs", f"{interface.value}.xml"))
    controls = (_build_control(tag) for tag in tree.iter() if tag.tag in _KINDS)
    return MappingProxyType({control.name: control for control in controls})


@cache
def get_box_labels(interface: AnnotationInterface) -> frozenset[str]:
    """Return the labels that a box may have on the annotation screen of an interface."""
    tree = _parse_screen_config(_read_package_file("configs", f"{interface.value}.xml"))
    return frozenset(tag.attrib["value"] for tag in tree.iter("Label"))


def _build_control(tag: ET.Element) -> ScreenControl:
    choices = (choice.get("alias", choice.attrib["value"]) for choice in tag.iter("Choice"))
    return ScreenControl(
        name=tag.attrib["name"],
        about=tag.attrib["toName"],
        kind=_KINDS[tag.tag],
        per_region=tag.tag == "VideoRectangle" or tag.get("perRegion") == "true",
        several=tag.get("choice") == "multiple",
        words=frozenset(choices),
    )


def _require_valid_question(interface: AnnotationInterface, question: str) -> None:
    setting = "question"
    if interface is not AnnotationInterface.PASS_FAIL:
        if question:
            raise InvalidSettingError(
                setting,
                f"the screen {interface.value} asks its own question",
                "Leave it out, or use pass-fail",
            )
        return
    if not question.strip() or len(question) > LONGEST_QUESTION:
        raise InvalidSettingError(
            setting,
            f"pass-fail asks one question, got {len(question)} characters",
            f"Give a question of up to {LONGEST_QUESTION} characters that yes answers",
        )
    # Label Studio replaces a word after `$` with the value of that name in the task's data.
    if "$" in question or sanitise_line(question) != question:
        raise InvalidSettingError(
            setting,
            f"a screen cannot show {question!a}",
            "Write plain words on one line, without `$`",
        )


def _parse_screen_config(config: str) -> ET.Element:
    return ET.fromstring(config)  # noqa: S314  a file of ours


@cache
def _read_package_file(folder: str, name: str) -> str:
    return files("unreel.annotation.interfaces").joinpath(folder, name).read_text(encoding="utf-8")
