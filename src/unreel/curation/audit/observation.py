"""Features of a clip for an audit: its file, one frame as numbers, and its overlays."""

from dataclasses import dataclass
from pathlib import Path

from unreel.core.facts import ClipFacts
from unreel.core.failure import Failure
from unreel.curation.audit.frame import frame_features
from unreel.curation.watermark.clip import watermarks_of
from unreel.curation.watermark.mark import WatermarkSearch
from unreel.curation.watermark.text import ReadText
from unreel.media.reader import MediaReader
from unreel.reviewers.floors.fitting import Features


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipObservation:
    """One clip as the audit sees it. What could not be read is a failure and is left out."""

    clip: str
    """Name or id, as reports should call it; unique."""
    creator: str | None
    """Who made it; `None` for a real clip."""
    group: str = ""
    """Clips of one group show one scene or share one source; "" for a clip on its own."""
    facts: ClipFacts | Failure
    frame: Features | Failure
    """`frame_features` of the frame in the middle."""
    watermarks: WatermarkSearch | Failure


def observe(
    path: Path,
    *,
    clip: str,
    creator: str | None,
    group: str = "",
    reader: MediaReader,
    read_text: ReadText | None = None,
) -> ClipObservation:
    """All that the audit needs of the clip at `path`; texts are read where `read_text` is given."""
    middle = reader.frames(path, sampling="uniform-1", encoding="rgb24")
    return ClipObservation(
        clip=clip,
        creator=creator,
        group=group,
        facts=reader.probe(path),
        frame=middle if isinstance(middle, Failure) else frame_features(middle.frames[0].rgb()),
        watermarks=watermarks_of(path, reader=reader, read_text=read_text),
    )
