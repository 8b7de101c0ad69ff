"""Configuration of the player, which shows a clip with boxes that follow the playhead.

A `PlayerSpec` is the JSON that `player.js` reads, field by field: `dataclasses.asdict` converts it.
Callers make tracks for a clip of a reviewer or an annotator; the player does the rest.
"""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Literal, Self

from unreel.core.box import Box
from unreel.core.span import MICROSECONDS, TimeSpan
from unreel.core.trace import BoxAt
from unreel.media.overlay import OverlayTrace
from unreel.pages.playable_clip import PlayerVideo

STYLE = "unreel.pages:player.css"
SCRIPT = "unreel.pages:player.js"
MOUNT = "unreel.pages:mount.js"
"""Script after `SCRIPT` that shows the spec at `SPEC_ID` in the element `player`, and makes buttons seek."""
SPEC_ID = "player-spec"
SHORTEST_US = MICROSECONDS // 10
"""Minimum time for which a trace without an end is marked, so that it is visible."""
_TRUTH_COLOUR = 1
_ANSWER_COLOURS = (0, 2, 3, 4, 5)
"""Colour indices of answers in the overlay's palette, in the same order as in the player."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayerBoxSpec:
    """Box of a fault at one timestamp, as fractions of the frame."""

    at_us: int
    x0: float
    y0: float
    x1: float
    y1: float

    @classmethod
    def of(cls, mark: BoxAt) -> Self:
        """Convert a `BoxAt`, a box with its timestamp, to a box of the player."""
        return cls(at_us=mark.at_us, **asdict(mark.box))

    def mark(self) -> BoxAt:
        """Convert the box of the player to a `BoxAt`, a box with its timestamp."""
        return BoxAt(self.at_us, Box(self.x0, self.y0, self.x1, self.y1))


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayerTraceSpec:
    """Fault on the timeline of the player; start or end is `None` if the source did not name it."""

    start_us: int | None
    end_us: int | None
    boxes: tuple[PlayerBoxSpec, ...]
    label: str
    text: str
    """Description that is shown when the fault is selected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayerTrackSpec:
    """Line of the player's timeline: all faults from one source, a reviewer or the ground truth."""

    name: str
    kind: Literal["truth", "answer"]
    traces: tuple[PlayerTraceSpec, ...]
    note: str = ""
    """Text on the line if it has no trace, for example that the clip is called real."""
    failed: bool = False
    """Whether the source gave no readable answer; `note` contains the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayerSpec:
    """Configuration of the player, as `player.js` reads it; timestamps count from the first frame."""

    src: str
    width: int
    height: int
    duration_us: int
    first_us: int
    """Timestamp of the first frame on the file's own clock."""
    instants: tuple[int, ...]
    """Time of each frame; empty if unknown."""
    shown_us: tuple[int, ...]
    """Times of the frames that were sent to reviewers."""
    tracks: tuple[PlayerTrackSpec, ...]
    title: str
    opens_us: int | None = None
    """Initial position of the player; `None` for the start."""


def build_player_spec(
    video: PlayerVideo,
    *,
    title: str,
    duration_us: int,
    shown_us: Iterable[int] = (),
    tracks: Iterable[PlayerTrackSpec] = (),
) -> PlayerSpec:
    """Build the player's configuration; it opens at the first onset that an answer names."""
    tracks = tuple(tracks)
    traces = [trace for track in tracks if track.kind == "answer" for trace in track.traces]
    return PlayerSpec(
        src=video.src,
        width=video.width,
        height=video.height,
        duration_us=duration_us,
        first_us=video.first_us,
        instants=tuple(video.instants_us()),
        shown_us=tuple(sorted(set(shown_us))),
        tracks=tracks,
        title=title,
        opens_us=min((t.start_us for t in traces if t.start_us is not None), default=None),
    )


def iter_track_colours(tracks: Iterable[PlayerTrackSpec]) -> Iterator[int]:
    """Yield the colour index of each track in the overlay's palette, the same as in the player."""
    n_answers = 0
    for track in tracks:
        if track.kind == "truth":
            yield _TRUTH_COLOUR
        else:
            yield _ANSWER_COLOURS[n_answers % len(_ANSWER_COLOURS)]
            n_answers += 1


def iter_overlay_traces(track: PlayerTrackSpec, *, duration_us: int) -> Iterator[OverlayTrace]:
    """Convert each fault of a track to a moving mark of the overlay, and yield the marks."""
    for trace in track.traces:
        start_us = trace.start_us or 0
        end_us = trace.end_us or max(duration_us, start_us + SHORTEST_US)
        yield OverlayTrace(
            span=TimeSpan(start_us, end_us),
            track=tuple(box.mark() for box in trace.boxes),
            ends=trace.end_us is not None,
        )
