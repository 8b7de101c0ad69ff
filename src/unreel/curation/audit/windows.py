"""Features of windows of a long clip, for the test whether the file reveals the generated segments.

| feature | meaning |
|---|---|
| `bit rate`, `bit rate spread`, `largest packet` | packet sizes of the window |
| `key frames`, `after key frame` | share of key frames; frames since the last one |
| `cuts`, `to cut`, `shot` | cuts in the window; frames to the nearest cut; length of the shot |
| `noise ...`, `colour noise`, `blocks ...` | of the frame in the middle, as in `frame_features.py` |

All values except those of key frames and cuts are differences to the mean of the clip's windows.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from unreel.core.content_ids import digest
from unreel.core.failure import Failure
from unreel.core.span import MICROSECONDS, TimeSpan
from unreel.curation.audit.clip_features import SEGMENT, WindowAuditData
from unreel.curation.audit.frame_features import compute_frame_features
from unreel.curation.shots import find_colour_cuts
from unreel.media.decode import Rgb
from unreel.media.reader import MediaReader
from unreel.media.scan import ClipScan

WINDOW_US: Final = MICROSECONDS
_STEP_US: Final = WINDOW_US // 2
MOST_WINDOWS: Final = 4
"""Maximum number of windows of a part."""
MOST_PAIRS: Final = 4
"""Maximum number of pairs of parts of a clip."""
_FRAME_FEATURES: Final = ("noise", "colour noise", "blocks")
_ABSOLUTE: Final = frozenset({"key frames", "after key frame", "cuts", "to cut", "shot"})


def read_window_features(
    path: Path,
    *,
    clip: str,
    group: str,
    parts: Sequence[TimeSpan],
    segments: Sequence[TimeSpan],
    reader: MediaReader,
) -> tuple[WindowAuditData, ...] | Failure:
    """Read the features of windows of the clip in pairs of parts: one with a segment, one without.

    The result is empty for a clip without generated segments.

    Args:
        path: File of the clip.
        clip: Name of the clip.
        group: Scene or source of the clip.
        parts: Time spans of the parts that the clip consists of, in order.
        segments: Time spans that are generated.
        reader: Reader of the file.
    """
    pairs = sample_window_pairs(parts, segments, clip=clip)
    if not pairs:
        return ()
    scan = reader.scan(path)
    if isinstance(scan, Failure):
        return scan
    windows = sorted(start for pair in pairs for start in (*pair.generated, *pair.real))
    features: dict[int, dict[str, float]] = {}
    for start, packets in zip(windows, _iter_packet_features(scan, windows), strict=True):
        middle = reader.frames_at(path, [start + WINDOW_US // 2])
        if isinstance(middle, Failure):
            return middle
        features[start] = packets | _measure_noise(middle.frames[0].rgb())
    names = [name for name in features[windows[0]] if name not in _ABSOLUTE]
    means = {name: float(np.mean([own[name] for own in features.values()])) for name in names}
    return tuple(
        WindowAuditData(
            clip=f"{clip} at {start / MICROSECONDS:.10g} s",
            creator=creator,
            group=group,
            pair=f"{clip} {number}",
            features={
                name: value - means.get(name, 0.0) for name, value in features[start].items()
            },
        )
        for number, pair in enumerate(pairs)
        for creator, starts in ((SEGMENT, pair.generated), (None, pair.real))
        for start in starts
    )


class WindowPair(NamedTuple):
    """Starts of windows of a part with a generated segment, and of a real part at the same offsets."""

    generated: tuple[int, ...]
    real: tuple[int, ...]


def sample_window_pairs(
    parts: Sequence[TimeSpan], segments: Sequence[TimeSpan], *, clip: str
) -> list[WindowPair]:
    """Sample pairs of a part with a segment and a real part of the clip, by a hash, and windows of both.

    The middle of a window is inside its part, and inside a segment if the part has one. The last
    real part is not used, because its length is the rest of the video.
    """

    def rank(*numbers: int) -> str:
        return digest("window", clip, *map(str, numbers))

    marked = [part for part in parts if any(map(part.overlap_us, segments))]
    real = [part for part in parts if part not in marked]
    pairs = []
    for part, other in zip(
        sorted(marked, key=lambda part: rank(part.start_us)),
        sorted(real[:-1], key=lambda part: rank(part.start_us)),
        strict=False,
    ):
        limit = min(
            min(own.length_us - WINDOW_US // 2, parts[-1].end_us - WINDOW_US - own.start_us + 1)
            for own in (part, other)
        )
        inside = [
            offset
            for offset in range(0, limit, _STEP_US)
            if _is_inside(part.start_us + offset + WINDOW_US // 2, segments)
        ]
        chosen = sorted(inside, key=lambda offset: rank(part.start_us, offset))[:MOST_WINDOWS]
        if chosen:
            generated, twin = (tuple(own.start_us + o for o in chosen) for own in (part, other))
            pairs.append(WindowPair(generated, twin))
    return pairs[:MOST_PAIRS]


def _is_inside(instant_us: int, segments: Sequence[TimeSpan]) -> bool:
    return any(segment.start_us <= instant_us < segment.end_us for segment in segments)


def _iter_packet_features(scan: ClipScan, windows: Sequence[int]) -> Iterator[dict[str, float]]:
    instants = np.array([float(at_s) for at_s in scan.instants_s]) * MICROSECONDS
    keys = np.array([0, *scan.keys])
    edges = np.array([0, *find_colour_cuts(scan.histograms), scan.n_frames])
    for start in windows:
        first = int(np.searchsorted(instants[:-1], start))
        end = max(first + 1, int(np.searchsorted(instants, start + WINDOW_US)))
        middle = (first + end) // 2
        shot = min(int(np.searchsorted(edges, middle, side="right")), len(edges) - 1)
        sizes = np.log(np.maximum(scan.packet_bytes[first:end], 1))
        yield {
            "bit rate": float(sizes.mean()),
            "bit rate spread": float(sizes.std()),
            "largest packet": float(sizes.max()),
            "key frames": float(np.isin(np.arange(first, end), keys).mean()),
            "after key frame": float(first - keys[keys <= first].max()),
            "cuts": float(np.sum((edges > first) & (edges < end))),
            "to cut": float(np.log1p(np.abs(edges - middle).min())),
            "shot": float(np.log(edges[shot] - edges[shot - 1])),
        }


def _measure_noise(rgb: Rgb) -> dict[str, float]:
    own = compute_frame_features(rgb)
    return {name: value for name, value in own.items() if name.startswith(_FRAME_FEATURES)}
