"""Questions to a reviewer, and the conditions under which they are sent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Literal

from unreel.core.clip import ClipId
from unreel.core.content_ids import digest
from unreel.core.judgement import Pair, list_subject_clips

Marks = Literal["default", "off", "on"]
"""Whether each frame follows its timestamp; `default`: only if the protocol asks for a time."""
SAMPLING_PATTERNS = (
    "uniform-N",
    "fps-F",
    "fps-F-max-N",
    "window-S-E-N",
    "paper-8",
    "vlmevalkit-N",
    "vlmevalkit-fps-F",
    "video-llava-N",
    "video-llava-hf-N",
    "llamafactory-F-max-N",
    "dtr",
    "dtr-video-llava",
    "dtr-llava-onevision",
)
"""Name patterns of the sampling plans of `unreel.media.sampling`; help texts list them without importing numpy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """Input settings of a question. Answers are comparable only under equal conditions."""

    sampling: str = "uniform-8"
    """Name of a sampling plan: see `unreel.media.sampling`."""
    audio: Literal["off", "on"] = "off"
    watermark: Literal["kept", "removed"] = "kept"
    thinking: Literal["default", "off", "on"] = "default"
    prompt: str = "paper"
    """Name of a prompt variant of the protocol."""
    max_pixels: int | None = None
    """Maximum number of pixels of a frame; larger frames are scaled down. `None` for no limit."""
    marks: Marks = "default"

    def written(self) -> dict[str, object]:
        """Return the fields by name; newer fields at their default are omitted, so old keys stay valid."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if (name, value) not in LATER.items()}

    def words(self, parts: Sequence[str]) -> list[str]:
        """Format the fields `parts` for display, such as `uniform-8`, without those `written` omits."""
        values = self.written()
        return [
            str(values[part]) if part == "sampling" else f"{part.replace('_', ' ')} {values[part]}"
            for part in parts
            if part in values
        ]

    def __str__(self) -> str:
        return _format_condition(self)


@lru_cache(maxsize=64)  # a run has few different conditions
def _format_condition(condition: Condition) -> str:
    return " ".join(f"{name}={value}" for name, value in condition.written().items())


def list_differing_condition_fields(conditions: Sequence[Condition]) -> tuple[str, ...]:
    """List the fields whose values differ between `conditions`."""
    return tuple(
        field.name
        for field in fields(Condition)
        if len({getattr(condition, field.name) for condition in conditions}) > 1
    )


LATER: Mapping[str, object] = {"max_pixels": None, "marks": "default"}


@dataclass(frozen=True, slots=True)
class Instrument:
    """A protocol at one version: a changed prompt, parser or formula is a new version."""

    protocol: str
    version: int

    def __str__(self) -> str:
        return f"{self.protocol}@{self.version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One clip, or one pair, under one condition and protocol."""

    subject: ClipId | Pair
    instrument: Instrument
    condition: Condition

    @property
    def shown(self) -> tuple[ClipId, ...]:
        """Return the clips in presentation order."""
        return list_subject_clips(self.subject)

    def key(self, reviewer: str) -> str:
        """Return the id of this question to `reviewer`, equal on every machine and in every run."""
        return compute_question_key(self.shown, reviewer, self.instrument, str(self.condition))


def compute_question_key(
    clips: Sequence[str], reviewer: str, instrument: Instrument, condition: str
) -> str:
    """Return the key of a question from the fields of its stored row; `condition` is `str(Condition)`."""
    return digest("question", *clips, reviewer, str(instrument), condition)
