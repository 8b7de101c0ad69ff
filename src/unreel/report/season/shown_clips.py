"""Select the clips of a season that may be shown on its pages, and their player data."""

from collections.abc import Callable
from typing import Literal

from unreel.benchmarks.entry import Entry
from unreel.core.clip import Clip
from unreel.core.span import convert_to_microseconds
from unreel.curation.hub_dataset import find_hub_licence_id
from unreel.pages.playable_clip import PlayerVideo
from unreel.pages.player import PlayerSpec, build_player_spec
from unreel.report.clips.clip_files import MediaFolder
from unreel.report.review.findings import build_finding_tracks

Showing = Literal["licensed", "link", "copy", "none"]
Show = Callable[[Entry, Clip], PlayerSpec | None]


def build_clip_publisher(folder: MediaFolder, showing: Showing) -> Show:
    """Return a function that adds a clip to the media folder and returns its player data or `None`."""

    def show(entry: Entry, clip: Clip) -> PlayerSpec | None:
        if showing == "licensed" and find_hub_licence_id(entry.licence) is None:
            return None
        source, _ = folder.add(clip)
        return None if source is None else _build_player_spec(entry, clip, source)

    return show


def _build_player_spec(entry: Entry, clip: Clip, source: str) -> PlayerSpec:
    video = clip.facts.video
    footage = PlayerVideo(
        src=f"../{source}",
        width=video.width,
        height=video.height,
        n_frames=video.n_frames,
        rate=None if video.variable_rate else video.average_rate,
        first_us=convert_to_microseconds(video.first_at_s),
        is_copy=False,
    )
    duration_us = convert_to_microseconds(video.duration_s)
    tracks = build_finding_tracks((), entry.traces, duration_us=duration_us)
    return build_player_spec(footage, title=entry.name, duration_us=duration_us, tracks=tracks)
