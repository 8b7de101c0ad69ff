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
from typing import Final

import numpy as np

from unreel.core.content_ids import digest
from unreel.core.failure import Failure
from unreel.core.span import MICROSECONDS, TimeSpan, convert_to_microseconds
from unreel.curation.audit.clip_features import SEGMENT, WindowAuditData
from unreel.curation.audit.frame_features import compute_frame_features
from unreel.curation.shots import find_colour_cuts
from unreel.media.decode import Rgb
from unreel.media.reader import MediaReader
from unreel.media.scan import ClipScan

WINDOW_US: Final = MICROSECONDS
_STEP_US: Final = WINDOW_US // 2
MOST_WINDOWS: Final = 8
"""Windows of a clip inside segments, and as many outside."""
_FRAME_FEATURES: Final = ("noise", "colour noise", "blocks")
_ABSOLUTE: Final = frozenset({"key frames", "after key frame", "cuts", "to cut", "shot"})


def read_window_features(
    path: Path,
    *,
    clip: str,
    group: str,
    segments: Sequence[TimeSpan],
    reader: MediaReader,
) -> tuple[WindowAuditData, ...] | Failure:
    """Read the features of windows inside `segments` of the clip, and of as many outside.

    A clip without generated segments has none.
    """
    scan = reader.scan(path)
    if isinstance(scan, Failure):
        return scan
    inside, outside = _sample_windows(scan, segments, clip)
    windows = sorted([*inside, *outside])
    if not inside or not outside:
        return ()
    features = []
    for start, packets in zip(windows, _iter_packet_features(scan, windows), strict=True):
        middle = reader.frames_at(path, [start + WINDOW_US // 2])
        if isinstance(middle, Failure):
            return middle
        features.append(packets | _measure_noise(middle.frames[0].rgb()))
    names = [name for name in features[0] if name not in _ABSOLUTE]
    means = {name: float(np.mean([own[name] for own in features])) for name in names}
    return tuple(
        WindowAuditData(
            clip=f"{clip} at {start / MICROSECONDS:g} s",
            creator=SEGMENT if start in inside else None,
            group=group,
            features={name: value - means.get(name, 0.0) for name, value in own.items()},
        )
        for start, own in zip(windows, features, strict=True)
    )


def _sample_windows(
    scan: ClipScan, segments: Sequence[TimeSpan], clip: str
) -> tuple[set[int], set[int]]:
    """Return the starts of as many windows inside the segments as outside, sampled by a hash.

    The middle of a window decides, so windows of both kinds are equally often at a cut.
    """
    end_us = convert_to_microseconds(scan.end_s)
    inside: list[int] = []
    outside: list[int] = []
    for start in range(0, end_us - WINDOW_US + 1, _STEP_US):
        middle = start + WINDOW_US // 2
        marked = any(segment.start_us <= middle < segment.end_us for segment in segments)
        (inside if marked else outside).append(start)
    count = min(MOST_WINDOWS, len(inside), len(outside))

    def sample(starts: list[int]) -> set[int]:
        return set(sorted(starts, key=lambda start: digest("window", clip, str(start)))[:count])

    return sample(inside), sample(outside)


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
