"""Model families: accepted inputs, and the units of coordinates and times in their answers.

Servers do not report these units, and a wrong guess silently ruins a score, so they are
declared here. A model that no pattern matches is `unknown`: it receives frames only.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any, Literal

from unreel.core.errors import InvalidSettingError, UnknownNameError
from unreel.protocols.presentation import TimeFormat
from unreel.reviewers.endpoint.model_address import ModelAddress

RESIZED = "resized "
"""Prefix of a box space that states a checkpoint's own resize bounds in pixels, as `resized MIN-MAX`."""
_BOUNDS = re.compile(rf"{RESIZED}(?P<least>[0-9]{{1,9}})-(?P<most>[0-9]{{1,9}})", re.ASCII)
BoxConvention = Literal["pixel", "unit", "permille", "model-input"]
Switch = Literal["off", "on"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameResizeRule:
    """Resize rule of a model's processor: sides to multiples of `multiple`, area within bounds."""

    multiple: int
    min_pixels: int
    max_pixels: int

    def size(self, width: int, height: int) -> tuple[int, int]:
        """Return the width and height of a frame after the resize, as the model sees the frame."""
        wide, high = (max(1, round(side / self.multiple)) for side in (width, height))
        area = wide * high * self.multiple**2
        if area > self.max_pixels:
            scale = math.sqrt(self.max_pixels / (width * height)) / self.multiple
            wide, high = (max(1, math.floor(side * scale)) for side in (width, height))
        elif area < self.min_pixels:
            scale = math.sqrt(self.min_pixels / (width * height)) / self.multiple
            wide, high = (math.ceil(side * scale) for side in (width, height))
        return wide * self.multiple, high * self.multiple


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFamily:
    """A family of models: accepted inputs, and the units of coordinates and times in its answers."""

    name: str
    pattern: str
    """Regular expression that is searched for in model names, ignoring case."""
    boxes: BoxConvention
    times: TimeFormat = "seconds"
    resize: FrameResizeRule | None = None
    """Resize rule of frames; required if boxes are in pixels of the resized frame."""
    film: FrameResizeRule | None = None
    """Resize rule of the frames of a video, if it differs from `resize`."""
    of: str | None = None
    """Name of the architecture, if several families share it."""
    video: bool = False
    audio: bool = False
    seeds: bool = False
    temperature: bool = True
    thinking: Mapping[Switch, Mapping[str, Any]] = field(
        default_factory=lambda: MappingProxyType({})
    )
    """Request fields that turn thinking `on` or `off`; empty if that is the model's default. A missing
    switch is unsupported or unknown.
    """

    @property
    def kind(self) -> str:
        """Return the architecture of the family, which defines how the model reads the times of a video."""
        return self.of or self.name

    def box_space(self, width: int, height: int, *, film: bool = False) -> str:
        """Return the coordinate space of boxes for frames of this size, in `parse_box_space` notation."""
        shown, rule = (width, height), (self.film if film else None) or self.resize
        return format_box_space(self.boxes, shown=shown, seen=rule.size(*shown) if rule else shown)


def format_box_space(boxes: str, *, shown: tuple[int, int], seen: tuple[int, int]) -> str:
    """Format the box space for shown and resized sizes; model pixels are those of the shown frame."""
    match boxes:
        case "pixel":
            width, height = shown
        case "model-input":
            width, height = seen
        case _:
            return boxes
    return f"model-input {width}x{height}"


_IN_TEMPLATE: Mapping[Switch, Mapping[str, Any]] = {
    "off": {"chat_template_kwargs": {"enable_thinking": False}},
    "on": {"chat_template_kwargs": {"enable_thinking": True}},
}
_NEVER: Mapping[Switch, Mapping[str, Any]] = {"off": {}}
_ALWAYS: Mapping[Switch, Mapping[str, Any]] = {"on": {}}
_EFFORT: Mapping[Switch, Mapping[str, Any]] = {
    "on": {"reasoning_effort": "high"},
    "off": {"reasoning_effort": "none"},
}
_EFFORT_ON: Mapping[Switch, Mapping[str, Any]] = {"on": _EFFORT["on"]}

_OPENROUTER: Mapping[Switch, Mapping[str, Any]] = {
    "on": {"reasoning": {"effort": "high"}},
    "off": {"reasoning": {"effort": "none"}},
}
"""Request fields of OpenRouter, which are the same for all families."""

_open = partial(ModelFamily, video=True, seeds=True)
_qwen3 = partial(
    _open,
    boxes="permille",
    resize=FrameResizeRule(multiple=32, min_pixels=4 * 32**2, max_pixels=16384 * 32**2),
)
_gemini = partial(ModelFamily, boxes="permille", times="clock", audio=True)

# Patterns are tried in this order. Sources: the families' model cards and processors. Qwen2.5-VL
# trains on absolute pixels of the resized frame, Qwen3-VL and Gemini on 0..1000. Thinking switches
# are declared only if documented: OpenAI accepts `none` from gpt-5.1 on, Google for 2.5 Flash but
# never for Pro or Gemini 3; Qwen3-VL has separate checkpoints with and without thinking, and its
# hosted `plus` and `flash` have a switch.
FAMILIES = (
    _qwen3(
        name="qwen3-vl-hosted",
        pattern=r"qwen-?3(\.\d+)?-?vl-(plus|flash)",
        thinking={"on": {"enable_thinking": True}, "off": {"enable_thinking": False}},
    ),
    _qwen3(
        name="qwen3-vl-thinking",
        of="qwen3-vl",
        pattern=r"qwen-?3(\.\d+)?-?(vl|omni).*thinking",
        thinking=_ALWAYS,
    ),
    # vLLM, models/qwen3_5.py: frames are processed as for Qwen3-VL. vLLM does not state the unit of
    # boxes, which is assumed to be the same. The names of the checkpoints lack "VL".
    _qwen3(
        name="qwen3.5",
        of="qwen3-vl",
        pattern=r"qwen-?3[._]5(?!-?(plus|flash|omni))",
        thinking=_IN_TEMPLATE,
    ),
    _qwen3(name="qwen3-vl", pattern=r"qwen-?3(\.\d+)?-?(vl|omni)", thinking=_NEVER),
    _open(
        name="qwen2.5-vl",
        pattern=r"qwen-?2(\.5|_5)?-?(vl|omni)",
        boxes="model-input",
        resize=FrameResizeRule(multiple=28, min_pixels=4 * 28**2, max_pixels=16384 * 28**2),
        film=FrameResizeRule(multiple=28, min_pixels=128 * 28**2, max_pixels=768 * 28**2),
        thinking=_NEVER,
    ),
    _open(name="videollama3", pattern=r"video-?llama-?3", boxes="pixel", thinking=_NEVER),
    _open(name="intern-s1", pattern=r"intern-?s1", boxes="permille", thinking=_IN_TEMPLATE),
    # vLLM, models/llava_onevision.py: images and videos, without times of frames. It does not state
    # the unit of boxes: pixels are assumed, as for an unknown family.
    _open(
        name="llava-onevision", pattern=r"llava-?(one-?vision|ov)", boxes="pixel", thinking=_NEVER
    ),
    # It thinks only with its makers' system prompt, which is never sent here.
    _open(name="internvl", pattern=r"intern-?vl", boxes="permille", thinking=_NEVER),
    _open(
        name="glm-v-thinking",
        pattern=r"glm-?4(\.\d+)?v.*thinking",
        boxes="permille",
        thinking=_ALWAYS,
    ),
    _open(name="glm-v", pattern=r"glm-?4(\.\d+)?v", boxes="permille", thinking=_IN_TEMPLATE),
    _gemini(name="gemini-flash", pattern=r"gemini-2\.5-flash", thinking=_EFFORT),
    _gemini(name="gemini-plain", pattern=r"gemini-(1|2\.0)", thinking=_NEVER),
    _gemini(name="gemini", pattern=r"gemini", thinking=_EFFORT_ON),
    ModelFamily(name="gemma", pattern=r"gemma", boxes="permille", seeds=True),
    ModelFamily(name="claude", pattern=r"claude", boxes="pixel", thinking=_OPENROUTER),
    ModelFamily(
        name="openai-audio",
        pattern=r"gpt-.*audio",
        boxes="pixel",
        audio=True,
        seeds=True,
        thinking=_NEVER,
    ),
    ModelFamily(
        name="openai-switch",
        pattern=r"(^|/)gpt-5\.\d(?!.*(codex|chat|pro))",
        boxes="pixel",
        temperature=False,
        thinking=_EFFORT,
    ),
    ModelFamily(
        name="openai-reasoning",
        pattern=r"(^|/)(o\d|gpt-[5-9])",
        boxes="pixel",
        temperature=False,
        thinking=_EFFORT_ON,
    ),
    ModelFamily(
        name="openai", pattern=r"(^|/)(gpt|chatgpt)-", boxes="pixel", seeds=True, thinking=_NEVER
    ),
    ModelFamily(name="unknown", pattern="", boxes="pixel"),
)


def detect_model_family(address: ModelAddress, named: str | None = None) -> ModelFamily:
    """Return a model's family by `named`, else by its name, with its server's request fields."""
    family = match_model_family(address.model) if named is None else get_model_family(named)
    if address.provider != "openrouter":
        return family
    translated = {
        switch: _OPENROUTER[switch] if sent else sent for switch, sent in family.thinking.items()
    }
    return replace(family, thinking=translated)


def build_thinking_request_fields(
    family: ModelFamily, thinking: Switch, *, asked: bool
) -> Mapping[str, Any] | str:
    """Return the request fields that set `thinking`, or the reason why it cannot be set.

    `asked` is whether the prompt asks for thoughts. Such a prompt makes every model think aloud, so
    it needs no switch, and it contradicts `off`.
    """
    if thinking == "off" and asked:
        return "the prompt asks for thoughts, so thinking cannot be off"
    if thinking in family.thinking:
        return family.thinking[thinking]
    if asked:
        return {}
    return f"the {family.name} family has no way to switch thinking {thinking}"


def apply_resize_bounds(family: ModelFamily, space: str) -> ModelFamily:
    """Return `family` with the resize bounds that `space` declares, for example `resized 3136-50176`.

    Any other declaration leaves the family unchanged. Raise `InvalidSettingError` if the bounds are
    invalid, or the family's boxes do not depend on them.
    """
    if not space.startswith(RESIZED):
        return family
    bounds, setting = _BOUNDS.fullmatch(space), "box_space"
    if bounds is None or not 0 < int(bounds["least"]) <= int(bounds["most"]):
        raise InvalidSettingError(setting, f"cannot use {space!r}", f"Write {RESIZED}3136-50176")
    if family.resize is None or family.boxes != "model-input":
        raise InvalidSettingError(
            setting,
            f"boxes of the {family.name} family do not depend on its resize",
            "Leave it out",
        )
    min_pixels, max_pixels = int(bounds["least"]), int(bounds["most"])
    rule = replace(family.resize, min_pixels=min_pixels, max_pixels=max_pixels)
    return replace(family, resize=rule, film=None)


def match_model_family(model: str) -> ModelFamily:
    """Return the first family whose pattern matches the name of a model, else the family `unknown`."""
    return next(f for f in FAMILIES if re.search(f.pattern, model, re.IGNORECASE))


def get_model_family(name: str) -> ModelFamily:
    """Return the model family with the given name."""
    for known in FAMILIES:
        if known.name == name:
            return known
    raise UnknownNameError("model family", name, [f.name for f in FAMILIES])
