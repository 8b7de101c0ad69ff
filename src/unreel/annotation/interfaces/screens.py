"""Six annotation screens: Label Studio label configurations and the answers that each allows.

The configurations are files, so that the leader of a campaign can read them. Questions, choices
and hotkeys of a screen are read from its configuration and stored nowhere else.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Final
from xml.etree import ElementTree as ET
from xml.sax.saxutils import quoteattr

from unreel.annotation.campaign import AnnotationInterface
from unreel.core.errors import InvalidSettingError
from unreel.core.identity import digest
from unreel.core.safe_text import sanitise_line

LONGEST_QUESTION: Final = 300
_QUESTION: Final = '"QUESTION"'
_KINDS: Final = {"Choices": "choices", "TextArea": "textarea", "VideoRectangle": "videorectangle"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenControl:
    """One thing that a screen asks for."""

    name: str
    about: str
    """The video that it is about."""
    kind: str
    """What its results say to be: `choices`, `textarea` or `videorectangle`."""
    per_region: bool
    several: bool
    """Whether more than one of its words may be chosen."""
    words: frozenset[str]
    """What may be chosen; empty for texts and boxes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotationScreen:
    """Screen of an interface for an annotator."""

    interface: AnnotationInterface
    config: str
    """Label Studio's label configuration, XML."""
    guidelines: str
    """What to read before the first task, HTML without pictures from elsewhere."""
    hotkeys: Mapping[str, str]
    """What each key chooses."""

    @property
    def version(self) -> str:
        """Return a hash of the label configuration; any change of the text changes the version."""
        return digest("screen", self.config)[:12]


def get_screen(interface: AnnotationInterface, *, question: str = "") -> AnnotationScreen:
    """Return the screen of an interface; only `pass-fail` takes a `question`.

    Raises:
        InvalidSettingError: The question is missing, not allowed for this interface, or contains
            characters that a screen cannot show.
    """
    _require_question(interface, question)
    config = _read_package_file("configs", f"{interface.value}.xml").replace(
        _QUESTION, quoteattr(question)
    )
    return AnnotationScreen(
        interface=interface,
        config=config,
        guidelines=_read_package_file("guidelines", f"{interface.value}.html"),
        hotkeys=MappingProxyType(_read_hotkeys(config)),
    )


@cache
def get_controls(interface: AnnotationInterface) -> Mapping[str, ScreenControl]:
    """Return the controls of a screen by name."""
    tree = _parse_screen_config(_read_package_file("configs", f"{interface.value}.xml"))
    found = (_build_control(tag) for tag in tree.iter() if tag.tag in _KINDS)
    return MappingProxyType({control.name: control for control in found})


@cache
def get_box_labels(interface: AnnotationInterface) -> frozenset[str]:
    """Return the box labels that the interface allows."""
    tree = _parse_screen_config(_read_package_file("configs", f"{interface.value}.xml"))
    return frozenset(tag.attrib["value"] for tag in tree.iter("Label"))


def _build_control(tag: ET.Element) -> ScreenControl:
    words = (choice.get("alias", choice.attrib["value"]) for choice in tag.iter("Choice"))
    return ScreenControl(
        name=tag.attrib["name"],
        about=tag.attrib["toName"],
        kind=_KINDS[tag.tag],
        per_region=tag.tag == "VideoRectangle" or tag.get("perRegion") == "true",
        several=tag.get("choice") == "multiple",
        words=frozenset(words),
    )


def _read_hotkeys(config: str) -> dict[str, str]:
    return {
        tag.attrib["hotkey"]: tag.get("alias", tag.attrib["value"])
        for tag in _parse_screen_config(config).iter()
        if "hotkey" in tag.attrib
    }


def _require_question(interface: AnnotationInterface, question: str) -> None:
    setting = "question"
    if interface is not AnnotationInterface.PASS_FAIL:
        if question:
            problem = f"the screen {interface.value} asks its own question"
            raise InvalidSettingError(setting, problem, "Leave it out, or use pass-fail")
        return
    if not question.strip() or len(question) > LONGEST_QUESTION:
        problem = f"pass-fail asks one question, got {len(question)} characters"
        remedy = f"Give a question of up to {LONGEST_QUESTION} characters that yes answers"
        raise InvalidSettingError(setting, problem, remedy)
    # Label Studio puts a task's own data in the place of a word behind `$`.
    if "$" in question or sanitise_line(question) != question:
        problem = f"a screen cannot show {question!a}"
        raise InvalidSettingError(setting, problem, "Write plain words on one line, without `$`")


def _parse_screen_config(config: str) -> ET.Element:
    return ET.fromstring(config)  # noqa: S314  a file of ours


@cache
def _read_package_file(folder: str, name: str) -> str:
    return files("unreel.annotation.interfaces").joinpath(folder, name).read_text(encoding="utf-8")
