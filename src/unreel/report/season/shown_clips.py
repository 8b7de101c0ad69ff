"""Select the clips of a season that may be shown on its pages, and their player data."""

from collections.abc import Callable
from typing import Literal

from unreel.benchmarks.entry import Entry
from unreel.core.clip import Clip
from unreel.core.span import to_us
from unreel.curation.hub_dataset import hub_identifier
from unreel.pages.playable_clip import PlayerFootage
from unreel.pages.player import PlayerSpec, play
from unreel.report.clips.media_folder import MediaFolder
from unreel.report.review.findings import find_tracks

Showing = Literal["licensed", "link", "copy", "none"]
Show = Callable[[Entry, Clip], PlayerSpec | None]


def show_in(folder: MediaFolder, showing: Showing) -> Show:
    """Put clips next to pages, and return their player's config; `None` for a missing clip."""

    def show(entry: Entry, clip: Clip) -> PlayerSpec | None:
        if showing == "licensed" and hub_identifier(entry.licence) is None:
            return None
        source, _ = folder.add(clip)
        return None if source is None else _build_player_spec(entry, clip, source)

    return show


def _build_player_spec(entry: Entry, clip: Clip, source: str) -> PlayerSpec:
    video = clip.facts.video
    footage = PlayerFootage(
        src=f"../{source}",
        width=video.width,
        height=video.height,
        n_frames=video.n_frames,
        rate=None if video.variable_rate else video.average_rate,
        first_us=to_us(video.first_at_s),
        is_copy=False,
    )
    duration_us = to_us(video.duration_s)
    tracks = find_tracks((), entry.traces, duration_us=duration_us)
    return play(footage, title=entry.name, duration_us=duration_us, tracks=tracks)
