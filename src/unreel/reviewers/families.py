"""What each family of models takes and how it speaks of places and times: data, with its reasons.

An endpoint does not tell these things, and a wrong guess silently ruins a score, so they are declared.
A model that no pattern matches is `unknown`: it gets frames and nothing that it might misread.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal

from unreel.core.errors import UnknownNameError

BoxConvention = Literal["pixel", "unit", "permille", "model-input"]
TimeFormat = Literal["seconds", "clock"]
Switch = Literal["off", "on"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResizeRule:
    """How a model's processor resizes a frame: sides to multiples of `multiple`, area within bounds."""

    multiple: int
    min_pixels: int
    max_pixels: int

    def size(self, width: int, height: int) -> tuple[int, int]:
        """Width and height of the frame that the model sees."""
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
class Family:
    """What models of one kind accept, and the units in which they answer."""

    name: str
    pattern: str
    """Matches the model's name, in any letter case."""
    boxes: BoxConvention
    times: TimeFormat = "seconds"
    resize: ResizeRule | None = None
    """Needed where boxes are pixels of the resized frame."""
    video: bool = False
    audio: bool = False
    seeds: bool = False
    temperature: bool = True
    thinking: Mapping[Switch, Mapping[str, Any]] = field(
        default_factory=lambda: MappingProxyType({})
    )
    """Fields of the request that switch thinking; a switch that is absent does not exist."""

    def box_space(self, width: int, height: int) -> str:
        """The space of the boxes for frames shown at that size, in the words of `declare_space`.

        A model that answers in pixels means those of the frame it was shown, not those of the clip.
        """
        match self.boxes:
            case "unit" | "permille":
                return self.boxes
            case "pixel":
                return f"model-input {width}x{height}"
            case "model-input":
                wide, high = self.resize.size(width, height) if self.resize else (width, height)
                return f"model-input {wide}x{high}"


def _switch(name: str) -> Mapping[Switch, Mapping[str, Any]]:
    return {
        "off": {"chat_template_kwargs": {name: False}},
        "on": {"chat_template_kwargs": {name: True}},
    }


# Patterns are tried in this order. Sources: the families' model cards and processors. Qwen2.5-VL
# trains on absolute pixels of the resized frame, Qwen3-VL and Gemini on 0..1000.
FAMILIES: Final = (
    Family(
        name="qwen3-vl",
        pattern=r"qwen-?3(\.\d+)?-?(vl|omni)",
        boxes="permille",
        resize=ResizeRule(multiple=32, min_pixels=4 * 32**2, max_pixels=16384 * 32**2),
        video=True,
        seeds=True,
    ),
    Family(
        name="qwen2.5-vl",
        pattern=r"qwen-?2(\.5|_5)?-?(vl|omni)",
        boxes="model-input",
        resize=ResizeRule(multiple=28, min_pixels=4 * 28**2, max_pixels=16384 * 28**2),
        video=True,
        seeds=True,
    ),
    Family(name="videollama3", pattern=r"video-?llama-?3", boxes="pixel", video=True, seeds=True),
    Family(
        name="internvl",
        pattern=r"intern-?(vl|s1)",
        boxes="permille",
        video=True,
        seeds=True,
    ),
    Family(
        name="glm-v",
        pattern=r"glm-?4(\.\d+)?v",
        boxes="permille",
        video=True,
        seeds=True,
        thinking=_switch("enable_thinking"),
    ),
    Family(name="gemini", pattern=r"gemini", boxes="permille", times="clock", audio=True),
    Family(name="gemma", pattern=r"gemma", boxes="permille", seeds=True),
    Family(name="claude", pattern=r"claude", boxes="pixel"),
    Family(name="openai-audio", pattern=r"gpt-.*audio", boxes="pixel", audio=True, seeds=True),
    Family(
        name="openai-reasoning",
        pattern=r"(^|/)(o\d|gpt-[5-9])",
        boxes="pixel",
        temperature=False,
        thinking={"on": {"reasoning_effort": "high"}, "off": {"reasoning_effort": "none"}},
    ),
    Family(name="openai", pattern=r"(^|/)(gpt|chatgpt)-", boxes="pixel", seeds=True),
    Family(name="unknown", pattern="", boxes="pixel"),
)


def find_family(model: str) -> Family:
    """The first family whose pattern is found in the model's name; `unknown` matches the rest."""
    return next(f for f in FAMILIES if re.search(f.pattern, model, re.IGNORECASE))


def family(name: str) -> Family:
    """The family of that name, for a model whose own name does not tell."""
    for known in FAMILIES:
        if known.name == name:
            return known
    kind = "model family"
    raise UnknownNameError(kind, name, [f.name for f in FAMILIES])
