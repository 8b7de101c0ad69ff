"""Files made to break their reader: each gives facts, frames or a failure, in time and in memory."""

import os
import re
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import crafted_matroska
import crafted_mp4
import crafted_others
import crafted_playlists
import pytest
from mutants import mutants
from naive_tasks import naive
from tiny_clips import GIF, MKV, MP4, TS, WEBM, make
from watch import Listener, Watch

from pace import slowness
from stalls import Stalls
from unreel.core.failure import Failure, FailureReason
from unreel.media.messages import TaskReplyPayload
from unreel.media.sandbox import FileSandbox

SAMPLING = "uniform-8"
FRAMES = {"sampling": SAMPLING, "longest_side": 256}

CONTAINERS = {"mp4": MP4, "mkv": MKV, "webm": WEBM, "gif": GIF, "ts": TS}

CANARY_WIDTH = 208
"""No other file has it, so a result that names it has read the canary."""

CALLERS = 2
"""Threads that ask at the same time."""
SLACK_S = 2.0
"""What a busy machine may add to a deadline."""

REASONS = {
    "codec-": FailureReason.CODEC_REFUSED,
    "list-": FailureReason.FORMAT_REFUSED,
    "none-": FailureReason.FORMAT_REFUSED,
    "none-empty": FailureReason.UNDECODABLE,
    "mp4-says-16000": FailureReason.TOO_MANY_PIXELS,
    "mp4-says-65535": FailureReason.TOO_MANY_PIXELS,
    "mp4-audio-only": FailureReason.NO_VIDEO,
    "mkv-says-16000": FailureReason.TOO_MANY_PIXELS,
    "mkv-says-65535": FailureReason.TOO_MANY_PIXELS,
    "mkv-h264-says-16000": FailureReason.TOO_MANY_PIXELS,
    "mkv-audio-only": FailureReason.NO_VIDEO,
    "mkv-subtitles-only": FailureReason.NO_VIDEO,
    "gif-16000": FailureReason.TOO_MANY_PIXELS,
    "gif-65535": FailureReason.TOO_MANY_PIXELS,
    "ts-audio-only": FailureReason.NO_VIDEO,
    "size-8192": FailureReason.TOO_MANY_PIXELS,
    "path-": FailureReason.NOT_A_FILE,
    "zero": FailureReason.NOT_A_FILE,
}
"""Why a file must fail, by the start of its name; the longest start counts."""


@dataclass(slots=True)
class Tally:
    """What a run of many files showed."""

    outcomes: Counter[str] = field(default_factory=Counter)
    longest_s: float = 0.0
    peak_mb: float = 0.0

    def add(self, asked: "Asked") -> None:
        """Count one outcome."""
        result = asked.result
        self.outcomes[result.reason.value if isinstance(result, Failure) else "read"] += 1
        assert str(CANARY_WIDTH) not in re.findall(r"'width': (\d+)", str(asked.headers))
        self.longest_s = max(self.longest_s, asked.taken_s)
        if asked.peak_mb is None:  # No child was needed to refuse it.
            assert isinstance(result, Failure)
            assert result.reason is FailureReason.NOT_A_FILE
        else:
            self.peak_mb = max(self.peak_mb, asked.peak_mb)

    def __str__(self) -> str:
        counted = ", ".join(f"{name} {n}" for name, n in self.outcomes.most_common())
        worst = f"longest {self.longest_s:.2f} s, peak {self.peak_mb:.0f} MB"
        return f"{self.outcomes.total()} calls: {counted}; {worst}"


@dataclass(frozen=True, slots=True)
class World:
    """A folder of crafted files, and the two things in it that nothing may touch."""

    folder: Path
    canary: Path
    watch: Watch
    listener: Listener


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("crafted")
    canary = folder / "canary.ts"
    canary.write_bytes(make(replace(TS, width=CANARY_WIDTH)))
    with Listener() as listener:
        playlists = crafted_playlists.playlists(canary, listener.port)
        files = (
            crafted_mp4.crafted()
            | crafted_mp4.exotic()
            | crafted_matroska.crafted()
            | crafted_others.crafted(playlists["list-hls.mp4"])
            | playlists
            | crafted_playlists.external_tracks(canary, listener.port)
        )
        for name, content in files.items():
            (folder / name).write_bytes(content)
        _odd_paths(folder)
        with Watch(canary) as watch:
            yield World(folder, canary, watch, listener)


def _odd_paths(folder: Path) -> None:
    os.mkfifo(folder / "path-fifo.mp4")
    (folder / "path-folder.mp4").mkdir()
    for name, target in {
        "path-link-to-canary.ts": "canary.ts",
        "path-link-to-device.mp4": "/dev/zero",
        "path-link-to-nothing.mp4": "nowhere",
        "path-link-to-itself.mp4": "path-link-to-itself.mp4",
    }.items():
        (folder / name).symlink_to(target)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder / "path-socket.mp4"))
    honest = make(MP4)
    for name in (
        "concat:canary.ts|canary.ts",
        "subfile,,start,0,end,0,,:canary.ts",
        "name-%03d.mp4",
    ):
        (folder / name).write_bytes(honest)


def _paths(world: World) -> list[Path]:
    inside = sorted(path for path in world.folder.iterdir() if path != world.canary)
    return [*inside, Path("/dev/zero")]


def _expected(name: str) -> FailureReason | None:
    starts = [start for start in REASONS if name.startswith(start)]
    return REASONS[max(starts, key=len)] if starts else None


@dataclass(frozen=True, slots=True)
class Asked:
    """One call and what came of it."""

    name: str
    task: str
    result: TaskReplyPayload | Failure
    peak_mb: float | None
    headers: list[dict[str, Any]]
    """Of all that came back."""
    taken_s: float


def _ask(sandbox: FileSandbox, jobs: Iterable[tuple[str, Path]]) -> Iterator[Asked]:
    """Run (task, path) pairs, `CALLERS` at a time."""

    def run(job: tuple[str, Path]) -> Asked:
        task, path = job
        headers: list[dict[str, Any]] = []
        started = time.monotonic()
        result, peak_mb = sandbox.run(
            task,
            path,
            request=FRAMES if task == "frames" else {},
            on_part=lambda part: headers.append(part.header),
        )
        if isinstance(result, TaskReplyPayload):
            headers.append(result.header)
        return Asked(path.name, task, result, peak_mb, headers, time.monotonic() - started)

    with ThreadPoolExecutor(CALLERS) as pool:
        yield from pool.map(run, jobs)


def _assert_within_limits(tally: Tally, sandbox: FileSandbox, stalls: Stalls) -> None:
    assert tally.longest_s < sandbox.limits.seconds + SLACK_S * slowness() + stalls.seconds()
    assert tally.peak_mb < sandbox.limits.memory_mb


def _assert_untouched(world: World) -> None:
    assert world.listener.visits == []
    assert world.watch.noticed() == 0


def test_crafted_files_give_facts_frames_or_a_failure_and_touch_nothing(
    sandbox: FileSandbox, world: World, stalls: Stalls, tell: Callable[[str], None]
) -> None:
    paths = _paths(world)
    assert len(paths) >= 60
    world.watch.noticed()
    tally, surprises = Tally(), []
    for asked in _ask(sandbox, ((task, path) for path in paths for task in ("probe", "frames"))):
        tally.add(asked)
        wanted, result = _expected(asked.name), asked.result
        if wanted and not (isinstance(result, Failure) and result.reason is wanted):
            surprises.append((asked.name, asked.task, str(result)[:200]))
        if isinstance(result, Failure) and result.reason is FailureReason.WORKER_DIED:
            surprises.append((asked.name, asked.task, str(result)[:200]))
    tell(f"crafted, {len(paths)} files: {tally}")
    _assert_untouched(world)
    _assert_within_limits(tally, sandbox, stalls)
    assert surprises == []


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("count", [20, pytest.param(600, marks=pytest.mark.slow)])
def test_mutants_give_frames_or_a_failure(
    sandbox: FileSandbox,
    container: str,
    count: int,
    tmp_path: Path,
    stalls: Stalls,
    tell: Callable[[str], None],
) -> None:
    original = make(CONTAINERS[container])
    seed = list(CONTAINERS).index(container)
    jobs = []
    for number, mutant in enumerate(mutants(original, count=count, seed=seed)):
        path = tmp_path / f"{number}.{container}"
        path.write_bytes(mutant)
        jobs.append(("frames", path))
    tally, started = Tally(), time.monotonic()
    for asked in _ask(sandbox, jobs):
        tally.add(asked)
    tell(f"{container} mutants in {time.monotonic() - started:.0f} s: {tally}")
    _assert_within_limits(tally, sandbox, stalls)
    assert tally.outcomes.total() == count
    # Mutants that are all refused at the door would test nothing behind it.
    assert tally.outcomes["read"] > count // 20
    assert tally.outcomes[FailureReason.WORKER_DIED.value] == 0


TREACHEROUS = ["list-hls.m3u8", "list-concat.mp4", "list-concat-unsafe.mp4", "dref-alias-file.mov"]


def _naive_requests(world: World) -> Iterator[tuple[Path, dict[str, object]]]:
    for name in TREACHEROUS:
        for by_name in (True, False):
            path = world.folder / name
            yield path, {"name": str(path), "by_name": by_name}


def test_without_guards_and_sandbox_the_same_files_do_reach_out(world: World) -> None:
    """The control: if this fails, the silence in the other tests proves nothing."""
    visited, noticed = 0, Counter[str]()
    for path, request in _naive_requests(world):
        world.watch.noticed()
        with path.open("rb") as file:
            naive(file, request)
        noticed[path.name] += world.watch.noticed()
        visited += len(world.listener.visits)
        world.listener.visits.clear()
    assert visited > 0
    assert all(noticed[name] > 0 for name in TREACHEROUS)


def test_the_sandbox_holds_even_where_a_task_guards_nothing(
    sandbox: FileSandbox, world: World
) -> None:
    world.watch.noticed()
    for path, request in _naive_requests(world):
        assert isinstance(sandbox("naive", path, request), TaskReplyPayload | Failure)
    _assert_untouched(world)
