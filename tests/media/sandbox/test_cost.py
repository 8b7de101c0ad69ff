"""Safety is cheap enough to be the default."""

import os
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tiny_clips import AVI, GIF, MKV, MP4, TS, WEBM, Recipe, make

from pace import slowness
from unreel.media.reader import MediaReader, SampledFrames, run_trusted_task
from unreel.media.sandbox import FileSandbox

MOST_MS = 60
REPEATS = 25
MOST_SECONDS = 20

DECODERS = {
    "h264.mp4": MP4,
    "h264.mkv": MKV,
    "vp9.webm": WEBM,
    "gif.gif": GIF,
    "mpeg2.ts": TS,
    "mpeg4.avi": AVI,
    "hevc.mp4": Recipe(codec="libx265", codec_options=(("x265-params", "log-level=none"),)),
    "vp8.webm": Recipe(container="webm", codec="libvpx"),
    "av1.mp4": Recipe(codec="libsvtav1", frames=40),
    "mjpeg.avi": Recipe(container="avi", codec="mjpeg", pixel_format="yuvj420p"),
}


def _is_quiet() -> bool:
    """True when no more tasks want to run than there are processors, this one included."""
    running = Path("/proc/loadavg").read_text(encoding="ascii").split()[3].partition("/")[0]
    return int(running) <= (os.cpu_count() or 1)


def _taken_ms(act: Callable[[], object]) -> float:
    started = time.perf_counter()
    act()
    return (time.perf_counter() - started) * 1000


LARGE = replace(MP4, width=1280, height=720, frames=24, plain=True)
"""As large as most generators make them. What is on the pictures costs the same on both paths."""

ASK: dict[str, Callable[[MediaReader, Path], object]] = {
    "probe": lambda reader, path: reader.probe(path),
    "8 frames as jpeg": lambda reader, path: reader.frames(
        path, sampling="uniform-8", longest_side=1024
    ),
    "8 frames as rgb24": lambda reader, path: reader.frames(
        path, sampling="uniform-8", encoding="rgb24", longest_side=1024
    ),
    "sound": lambda reader, path: reader.sound(path),
    "scan": lambda reader, path: reader.scan(path),
}


@pytest.mark.alone
@pytest.mark.parametrize("what", ASK)
@pytest.mark.parametrize(
    "recipe",
    [pytest.param(MP4, id="64x48"), pytest.param(LARGE, id="1280x720", marks=pytest.mark.slow)],
)
def test_the_hardened_path_costs_little_more_than_the_trusted_one(
    sandbox: FileSandbox, tmp_path: Path, recipe: Recipe, what: str, tell: Callable[[str], None]
) -> None:
    path = tmp_path / "clip.mp4"
    path.write_bytes(make(recipe))
    confined, trusting = MediaReader(sandbox), MediaReader(run_trusted_task)
    ask = ASK[what]
    ask(confined, path)
    every: list[tuple[float, float]] = []
    quiet: list[tuple[float, float]] = []
    deadline = time.monotonic() + MOST_SECONDS
    while len(quiet) < REPEATS and time.monotonic() < deadline:
        # Whether a repeat counts is decided by who else runs, never by how long it took.
        calm_before = _is_quiet()
        hardened = _taken_ms(lambda: ask(confined, path))
        trusted = _taken_ms(lambda: ask(trusting, path))
        every.append((hardened, trusted))
        if calm_before and _is_quiet():
            quiet.append((hardened, trusted))
    tell(f"{what}: quiet repeats: {_told(quiet)}; all repeats: {_told(every)}")
    if len(quiet) < REPEATS:
        pytest.skip(f"too busy to time: {len(quiet)} quiet repeats of {len(every)}, {_told(every)}")
    assert _added_ms(quiet) <= MOST_MS * slowness()


def _added_ms(repeats: list[tuple[float, float]]) -> float:
    return statistics.median(hardened - trusted for hardened, trusted in repeats)


def _told(repeats: list[tuple[float, float]]) -> str:
    if not repeats:
        return "none"
    hardened, trusted = (statistics.median(side) for side in zip(*repeats, strict=True))
    added = f"added {_added_ms(repeats):.1f} ms"
    return f"{added} (hardened {hardened:.1f}, trusted {trusted:.1f}), n={len(repeats)}"


@pytest.mark.parametrize("name", DECODERS)
def test_both_paths_see_the_same(sandbox: FileSandbox, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(make(DECODERS[name]))
    hardened, trusted = MediaReader(sandbox), MediaReader(run_trusted_task)
    assert hardened.probe(path) == trusted.probe(path)
    here = trusted.frames(path, sampling="uniform-4", encoding="rgb24")
    there = hardened.frames(path, sampling="uniform-4", encoding="rgb24")
    assert isinstance(here, SampledFrames)
    assert isinstance(there, SampledFrames)
    assert [frame.data for frame in there.frames] == [frame.data for frame in here.frames]
