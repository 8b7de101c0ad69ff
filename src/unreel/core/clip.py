"""Clips and where they come from."""

from dataclasses import dataclass
from typing import Final, NewType

from unreel.core.errors import InvalidValueError
from unreel.core.facts import ClipFacts
from unreel.core.sheet import html_table

ClipId = NewType("ClipId", str)
"""SHA-256 of the file's bytes, as 64 lower-case hexadecimal digits: `core.names.read_clip_id`
validates stored ones.
"""
UNKNOWN_CLIP: Final = ClipId("")
"""In the place of an id where a file's bytes were not hashed yet."""


@dataclass(frozen=True, slots=True)
class Real:
    """Filmed by a camera."""


@dataclass(frozen=True, slots=True)
class Generated:
    """Made by a creator, in one of its settings (`text`, `image+text`, ...; "" when not known)."""

    creator: str
    setting: str = ""

    def __post_init__(self) -> None:
        if not self.creator:
            msg = "a generated clip needs the name of its creator. Use 'unknown' if it is not known"
            raise InvalidValueError(msg)


Origin = Real | Generated


def get_creator(*origins: Origin) -> str:
    """Return the creator of the first generated clip; "" if all are real."""
    for origin in origins:
        if isinstance(origin, Generated):
            return origin.creator
    return ""


def get_setting(*origins: Origin) -> str:
    """Return the setting of the first generated clip; "" if all are real, or it is unknown."""
    for origin in origins:
        if isinstance(origin, Generated):
            return origin.setting
    return ""


def list_makers(creator: str, setting: str) -> tuple[str, ...]:
    """Return the creators whose metrics a clip counts for: its creator, and its creator in that setting; none for a real clip."""
    whole = (creator,) if creator else ()
    return (*whole, f"{creator}/{setting}") if setting else whole


def get_maker(origin: Origin) -> str:
    """Return the leaderboard name of a clip's creator, with the setting if known; "" for a real clip."""
    return (list_makers(get_creator(origin), get_setting(origin)) or ("",))[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Clip:
    """One video file, identified by the hash of its bytes; the file is not copied."""

    id: ClipId
    location: str
    """Path or URL of the bytes; two locations with the same bytes are the same clip."""
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
        return html_table("Clip", (), rows)
