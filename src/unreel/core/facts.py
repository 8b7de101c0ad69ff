"""Facts of a clip's streams, read from the file and never guessed."""

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoFacts:
    """Facts of the video stream. `width` and `height` apply after rotation by `rotation_deg`."""

    codec: str
    pixel_format: str
    width: int
    height: int
    rotation_deg: int
    """Clockwise turn that the container asks a player to apply: 0, 90, 180 or 270."""
    n_frames: int
    """Frames that the stream holds, counted from its packets."""
    average_rate: Fraction
    """Frames per second over the whole stream: exact, 30000/1001 stays 30000/1001."""
    variable_rate: bool
    """True when frames do not follow each other at one distance."""
    first_at_s: Fraction
    """When the container presents the first frame; every other instant counts from that frame."""
    duration_s: Fraction
    """From the first frame's start to the last frame's end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AudioFacts:
    """One sound stream."""

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
    """In alphabetical order."""
