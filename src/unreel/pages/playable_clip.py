"""Video of a clip for the player of a page: the file itself, or a copy that browsers can play."""

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from unreel.core.clip import Clip
from unreel.core.failure import Failure
from unreel.core.output_files import OutputDirectory
from unreel.core.span import convert_to_microseconds
from unreel.media.reader import MediaReader
from unreel.media.render import NormalisedClipFormat

INLINE_BYTES = 16 << 20
"""Maximum size of an inline clip: a browser reads the complete page before it shows anything."""

_MP4 = ("video/mp4", "evidence-clip.mp4")
_WEBM = ("video/webm", "evidence-clip.webm")
CLIP_FILE_NAMES = (_MP4[1], _WEBM[1])
"""File names of a clip that is stored next to the page, one for each container."""
_PLAYABLE = {
    **{("mp4", codec): _MP4 for codec in ("h264", "vp9", "av1")},
    **{("matroska", codec): _WEBM for codec in ("vp8", "vp9", "av1")},
}
_EIGHT_BIT = frozenset({"yuv420p", "yuvj420p"})
_LONGEST_SIDE = 1280
_FASTEST = Fraction(60)
_MAX_TIMES = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayerVideo:
    """Video of the player. `src` is a `data:` URL, or the name of a file next to the page."""

    src: str
    width: int
    height: int
    n_frames: int
    rate: Fraction | None
    """Frames per second; `None` if the rate varies."""
    first_us: int
    """Timestamp of the first frame in the file, because browsers use the file's clock."""
    is_copy: bool
    """Whether the video is a re-encoded copy, because browsers do not play the original format."""

    def instants_us(self) -> Iterator[int]:
        """Yield frame times in microseconds from the first; none if the rate varies or above 20,000 frames."""
        if self.rate is not None and self.n_frames <= _MAX_TIMES:
            yield from (
                convert_to_microseconds(index / self.rate) for index in range(self.n_frames)
            )


def prepare_player_video(
    clip: Clip, out: Path, *, reader: MediaReader, inline_bytes: int = INLINE_BYTES
) -> PlayerVideo | Failure:
    """Prepare the clip, re-encoded if necessary: above `inline_bytes` in `out`, else embedded."""
    facts = clip.facts
    way = _PLAYABLE.get((facts.container, facts.video.codec))
    if way is None or facts.video.pixel_format not in _EIGHT_BIT:
        return _make_playable_copy(clip, out, reader=reader, inline_bytes=inline_bytes)
    mime, name = way
    if facts.size_bytes <= inline_bytes:
        src = build_data_uri(Path(clip.location).read_bytes(), mime)
    else:
        src = name
        OutputDirectory(out, published=True).copy(Path(clip.location), name)
    video = facts.video
    return PlayerVideo(
        src=src,
        width=video.width,
        height=video.height,
        n_frames=video.n_frames,
        rate=None if video.variable_rate else video.average_rate,
        first_us=convert_to_microseconds(video.first_at_s),
        is_copy=False,
    )


def _make_playable_copy(
    clip: Clip, out: Path, *, reader: MediaReader, inline_bytes: int
) -> PlayerVideo | Failure:
    video = clip.facts.video
    # The copy keeps the aspect ratio, so that boxes stay valid.
    scale = min(Fraction(1), Fraction(_LONGEST_SIDE, max(video.width, video.height)))
    width, height = (max(16, round(side * scale / 2) * 2) for side in (video.width, video.height))
    target = NormalisedClipFormat(
        width=width,
        height=height,
        rate=min(_FASTEST, video.average_rate),
        sound="kept" if clip.facts.audio else "dropped",
    )
    data = reader.normalise(Path(clip.location), target)
    if isinstance(data, Failure):
        return data
    mime, name = _MP4
    src = build_data_uri(data, mime)
    if len(data) > inline_bytes:
        src = name
        OutputDirectory(out, published=True).write(name, data)
    return PlayerVideo(
        src=src,
        width=target.width,
        height=target.height,
        n_frames=max(1, -(-video.duration_s * target.rate // 1)),
        rate=target.rate,
        first_us=0,
        is_copy=True,
    )


def build_data_uri(data: bytes, mime: str) -> str:
    """Return `data` as a `data:` URI."""
    return f"data:{mime};base64,{base64.b64encode(data).decode()}"
