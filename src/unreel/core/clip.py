"""Clips, their origin, and facts of their streams, read from the file."""

from dataclasses import dataclass
from fractions import Fraction
from typing import NewType

from unreel.core.errors import InvalidValueError
from unreel.core.table_formats import build_html_table


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoFacts:
    """Facts of the video stream. `width` and `height` apply after rotation by `rotation_deg`."""

    codec: str
    pixel_format: str
    width: int
    height: int
    rotation_deg: int
    """Clockwise rotation that the container requests for display: 0, 90, 180 or 270 degrees."""
    n_frames: int
    """Number of frames of the stream, counted from its packets."""
    average_rate: Fraction
    """Mean number of frames per second of the stream, as an exact fraction such as 30000/1001."""
    variable_rate: bool
    """Whether the time between consecutive frames varies."""
    first_at_s: Fraction
    """Timestamp of the first frame in the container; all other times are relative to that frame."""
    duration_s: Fraction
    """Time from the start of the first frame to the end of the last frame."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AudioFacts:
    """Properties of one audio stream."""

    codec: str
    sample_rate_hz: int
    channels: int
    duration_s: Fraction


@dataclass(frozen=True, slots=True)
class FileTag:
    """A metadata tag of a file, outside its streams, such as the program that wrote the file.

    `value` is stored only for tags that name a program or a format. It is empty for all other tags,
    because they may contain a location, a person or a prompt.
    """

    name: str
    value: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipFacts:
    """Properties of the container and its streams."""

    container: str
    size_bytes: int
    video: VideoFacts
    audio: tuple[AudioFacts, ...] = ()
    tags: tuple[FileTag, ...] = ()


ClipId = NewType("ClipId", str)
"""SHA-256 of the file's bytes, as 64 lower-case hexadecimal digits; `core.safe_names.read_clip_id` validates stored
ids."""
UNKNOWN_CLIP = ClipId("")
"""Placeholder for the id of a file whose bytes were not hashed yet."""


@dataclass(frozen=True, slots=True)
class Real:
    """Origin of a clip that was filmed by a camera."""


@dataclass(frozen=True, slots=True)
class Generated:
    """Origin of a clip that a creator made, with its setting (`text`, `image+text`; "" if unknown)."""

    creator: str
    setting: str = ""

    def __post_init__(self) -> None:
        if not self.creator:
            raise InvalidValueError(
                "a generated clip needs the name of its creator. Use 'unknown' if it is not known"
            )


Origin = Real | Generated


def get_first_creator(*origins: Origin) -> str:
    """Return the creator of the first generated clip; "" if all are real."""
    for origin in origins:
        if isinstance(origin, Generated):
            return origin.creator
    return ""


def get_first_creator_setting(*origins: Origin) -> str:
    """Return the setting of the first generated clip; "" if all are real, or it is unknown."""
    for origin in origins:
        if isinstance(origin, Generated):
            return origin.setting
    return ""


def list_creator_names(creator: str, setting: str) -> tuple[str, ...]:
    """Return the names under which a clip is counted: `creator` and `creator/setting`; () if real."""
    names = (creator,) if creator else ()
    return (*names, f"{creator}/{setting}") if setting else names


def format_creator_with_setting(origin: Origin) -> str:
    """Return the leaderboard name of a clip's creator, with the setting if known; "" for a real clip."""
    return (
        list_creator_names(get_first_creator(origin), get_first_creator_setting(origin)) or ("",)
    )[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Clip:
    """One video file, identified by the hash of its bytes; the file is not copied."""

    id: ClipId
    location: str
    """Path or URL of the file; two locations with the same bytes are the same clip."""
    facts: ClipFacts

    @property
    def size(self) -> tuple[int, int]:
        """Return the width and height of the frames in pixels."""
        return self.facts.video.width, self.facts.video.height

    def _repr_html_(self) -> str:
        video, length_s = self.facts.video, float(self.facts.video.duration_s)
        rows = [
            ("location", self.location),
            ("id", self.id),
            ("picture", f"{video.width} x {video.height}, {video.codec}, {video.pixel_format}"),
            ("length", f"{length_s:.2f} s, {video.n_frames} frames"),
            ("sound", ", ".join(sound.codec for sound in self.facts.audio) or "none"),
        ]
        return build_html_table("Clip", (), rows)
