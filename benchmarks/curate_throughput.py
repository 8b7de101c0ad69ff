"""How fast clips are decoded, split, sampled and hashed: unreel beside bare pools, on the same clips.

    python benchmarks/curate_throughput.py --clips FOLDER
    python benchmarks/curate_throughput.py --sizes 100 2000 --only local --json

Everyone does the same work on every frame with the same functions of unreel: histogram, lightness,
changes, eight pictures, cuts, borders, hashes. The bare contenders open files in their own workers with
PyAV and nothing else; unreel opens each in a confined child, proves each frame's time, and commits rows.

Rounds take turns, so that a busy machine is busy for all; figures are medians over rounds. Processor time
is that of a lap and all its descendants, start-up included; the rate begins once Ray is up. Nothing leaves
this machine.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

SUFFIXES = {".mp4", ".webm", ".mkv", ".mov"}
RIVALS = {"local": "pool", "ray": "ray-data"}
"""Ours, and the bare contender that it is held against."""
RAY = ("ray", "ray-data")
WANTED = {"local": 0.9, "ray": 0.85}
DRAWN = 2
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Lap:
    """What one contender took for all clips."""

    clips: int
    cpu_s: float
    """Processor time for one clip."""
    per_s: float
    """Clips in a second."""


def main() -> None:
    asked = _arguments()
    if asked.lap:
        print(json.dumps(_lap(asked.lap, json.loads(asked.listing.read_text()), asked.workers)))
        return
    contenders = asked.only or ["pool", "local", "ray-data", "ray"]
    laps: dict[tuple[str, int], list[Lap]] = {}
    with tempfile.TemporaryDirectory(prefix="unreel-throughput-") as folder:
        files = _clips(asked.clips, Path(folder))
        for number in range(asked.rounds):
            for size in asked.sizes:
                listing = Path(folder) / f"{size}.json"
                listing.write_text(json.dumps([files[i % len(files)] for i in range(size)]))
                for name in contenders:
                    lap = _measure(name, listing, clips=size, workers=asked.workers)
                    laps.setdefault((name, size), []).append(lap)
                    print(f"round {number + 1}, {name}: {lap}", file=sys.stderr)
    figures = _figures(laps, workers=asked.workers)
    print(json.dumps(figures, indent=2) if asked.json else _table(figures))


def _arguments() -> Any:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clips", type=Path, help="folder of clips; without it some are drawn")
    parser.add_argument("--sizes", type=int, nargs="+", default=[40], help="clips in a lap")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", nargs="+", choices=[*RIVALS, *RIVALS.values()])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--lap", help=argparse.SUPPRESS)
    parser.add_argument("--listing", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def _clips(folder: Path | None, scratch: Path) -> list[str]:
    if folder is not None:
        return sorted(str(path) for path in folder.rglob("*") if path.suffix in SUFFIXES)
    sys.path.append(str(Path(__file__).parents[1] / "tests"))
    from synthesise import ClipRecipe, synthesise

    files = []
    for seed in range(DRAWN):
        recipe = ClipRecipe(width=1280, height=720, n_frames=120, gop=48, seed=seed)
        path = scratch / f"{seed}.mp4"
        path.write_bytes(synthesise(recipe))
        files.append(str(path))
    return files


def _measure(name: str, listing: Path, *, clips: int, workers: int) -> Lap:
    """One lap in a process of its own."""
    command = [sys.executable, __file__, "--lap", name, "--listing", str(listing)]
    command += ["--workers", str(workers)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as lap:
        watch = _Watch(lap.pid)
        watch.start()
        told, _ = lap.communicate()
        watch.stop()
    if lap.returncode:
        sys.exit(f"{name} ended with {lap.returncode}")
    figures = json.loads(told)
    # Ray's processes are awaited by nobody; the others are, and the kernel's own sum is exact.
    cpu_s = watch.seconds if name in RAY else figures["cpu_s"]
    return Lap(clips=clips, cpu_s=cpu_s / clips, per_s=clips / figures["seconds"])


class _Watch(threading.Thread):
    """Adds up the processor time of a process and its descendants, also of those that nobody awaits."""

    def __init__(self, root: int) -> None:
        super().__init__(daemon=True)
        self._root, self._done = root, threading.Event()
        self._seen: dict[int, float] = {}

    def run(self) -> None:
        while not self._done.wait(0.2):
            self._look()

    def stop(self) -> None:
        self._done.set()
        self.join()

    @property
    def seconds(self) -> float:
        return sum(self._seen.values())

    def _look(self) -> None:
        known: dict[int, tuple[int, float, float]] = dict(_processes())
        for pid, (_, own_s, awaited_s) in known.items():
            line = list(_ancestors(pid, known))
            if self._root not in (pid, *line):
                continue
            forks = [above for above in line if _is_zygote(above)]
            if not forks:  # A zygote's children are too short-lived to be seen: it tells for them.
                told = own_s + (awaited_s if _is_zygote(pid) else 0.0)
                self._seen[pid] = max(told, self._seen.get(pid, 0.0))


def _processes() -> Iterator[tuple[int, tuple[int, float, float]]]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            own, awaited = (sum(map(int, fields[i : i + 2])) / TICKS for i in (11, 13))
            yield int(entry.name), (int(fields[1]), own, awaited)


def _ancestors(pid: int, known: dict[int, tuple[int, float, float]]) -> Iterator[int]:
    while pid in known and (pid := known[pid][0]) > 1:
        yield pid


_ZYGOTES: dict[int, bool] = {}


def _is_zygote(pid: int) -> bool:
    if pid not in _ZYGOTES:
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            return False
        _ZYGOTES[pid] = b"sandbox.zygote" in words
    return _ZYGOTES[pid]


def _lap(name: str, files: list[str], workers: int) -> dict[str, float]:
    """The work of one contender, in this process and those that it starts."""
    match name:
        case "pool":
            began_s = time.monotonic()
            with ProcessPoolExecutor(workers) as pool:
                n_done = sum(1 for _ in pool.map(bare_scan, files))
        case "ray-data":
            ray = _start_ray(workers)
            began_s = time.monotonic()
            n_done = _run_ray_data(ray, files, workers)
        case "local" | "ray":
            if name == "ray":
                _start_ray(workers)
            began_s = time.monotonic()
            n_done = _run_engine(name, files, workers)
        case _:
            sys.exit(f"no contender is named {name}")
    seconds = time.monotonic() - began_s
    if n_done != len(files):
        sys.exit(f"{name} did {n_done} of {len(files)} clips")
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return {"seconds": seconds, "cpu_s": sum(one.ru_utime + one.ru_stime for one in used)}


def bare_scan(path: str) -> dict[str, Any]:
    """The same measures with PyAV and nothing around it."""
    import av

    from unreel.media.sampling import parse_sampling, plan_frames
    from unreel.media.scan import (
        PICKED_PLAN,
        ClipScan,
        FrameMeasurementCollector,
        measure_picked_frame,
    )
    from unreel.media.timeline import FrameTimeline

    with av.open(path) as container:
        stream = container.streams.video[0]
        stream.codec_context.thread_count = 1
        n_frames = stream.frames
        rate = Fraction(stream.average_rate)
        plan = plan_frames(
            parse_sampling(PICKED_PLAN), FrameTimeline.at_rate(rate, n_frames=n_frames)
        )
        meter, picked, instants = FrameMeasurementCollector(n_frames), [], []
        for index, frame in enumerate(container.decode(stream)):
            at_s = frame.pts * frame.time_base
            meter.add(frame, at_s=at_s)
            instants.append(at_s)
            if index in plan.indices:
                picked.append(measure_picked_frame(frame, index=index, at_s=at_s))
        scan = ClipScan(
            width=frame.width,
            height=frame.height,
            instants_s=tuple(instants),
            end_s=instants[-1] + 1 / rate,
            histograms=meter.histograms,
            lightness=meter.lightness,
            changes=meter.changes,
            stirs=meter.stirs,
            picked=tuple(picked),
        )
    return finish(scan)


def finish(scan: Any) -> dict[str, Any]:
    """What is decided from the measures: cuts, borders and hashes."""
    from pydantic import TypeAdapter

    from unreel.curation.shots import find_colour_cuts
    from unreel.media.fingerprint import (
        ClipFingerprint,
        compute_clip_fingerprint,
        find_frame_borders,
    )

    borders = find_frame_borders(scan.picked)
    hashes = TypeAdapter(ClipFingerprint).dump_python(
        compute_clip_fingerprint(scan, borders), mode="json"
    )
    return {"cuts": find_colour_cuts(scan.histograms), "borders": asdict(borders), "hashes": hashes}


def _scan_stage() -> Any:
    from unreel.core.failure import Failure
    from unreel.core.settings import read_environment_settings
    from unreel.engine.stage import Stage, convert_to_failed_row
    from unreel.media.access import open_media_reader

    class ScanStage(Stage):
        """One clip after the other, each in a confined child."""

        def setup(self) -> None:
            self._open = ExitStack()
            reader = open_media_reader(read_environment_settings(), trusted=False)
            self._reader = self._open.enter_context(reader)

        def __call__(self, row: Any) -> Any:
            scan = self._reader.scan(Path(row["location"]))
            if isinstance(scan, Failure):
                return convert_to_failed_row(row, scan)
            return row | {"found": json.dumps(finish(scan))}

        def close(self) -> None:
            self._open.close()

    return ScanStage()


def _run_engine(engine: str, files: list[str], workers: int) -> int:
    from unreel.curation.step_execution import FINDINGS
    from unreel.engine.location import StorageLocation
    from unreel.engine.run import run_pending_questions
    from unreel.engine.stage import WorkerResources
    from unreel.engine.table import LanceTable

    stage = _scan_stage()
    # As a curation has it: one actor for a machine, whose children use all its cores.
    stage.resources = WorkerResources(cpus=workers, in_flight=workers)
    rows = ({"key": str(i), "location": path} for i, path in enumerate(files))
    with tempfile.TemporaryDirectory(prefix="unreel-lap-") as folder:
        table = LanceTable(StorageLocation(folder) / "found.lance", FINDINGS)
        return run_pending_questions(rows, [stage], table=table, engine=engine).done


def _start_ray(workers: int) -> Any:
    import logging

    import ray
    import ray.data

    # More logical processors than workers: Ray Data's own operators want some.
    ray.init(
        num_cpus=max(8, 2 * workers),
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
    )
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    return ray


class _BareActor:
    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        return {"found": json.dumps(bare_scan(row["item"]))}


def _run_ray_data(ray: Any, files: list[str], workers: int) -> int:
    data = ray.data.from_items(files, override_num_blocks=len(files))
    data = data.map(_BareActor, compute=ray.data.ActorPoolStrategy(size=workers), num_cpus=1)
    return sum(1 for _ in data.iter_rows())


def _figures(laps: dict[tuple[str, int], list[Lap]], *, workers: int) -> dict[str, Any]:
    medians = {
        key: {
            "contender": key[0],
            "clips": key[1],
            "rounds": len(each),
            "cpu_s_per_clip": round(statistics.median(lap.cpu_s for lap in each), 4),
            "clips_per_s": round(statistics.median(lap.per_s for lap in each), 3),
        }
        for key, each in laps.items()
    }
    ratios = [
        {
            "contender": ours,
            "clips": size,
            "of": theirs,
            "wanted": WANTED[ours],
            # Rounds took turns, so each is a pair of its own.
            "rate": round(statistics.median(_ratios(laps, ours, theirs, size, "per_s")), 3),
            "cpu": round(1 / statistics.median(_ratios(laps, ours, theirs, size, "cpu_s")), 3),
        }
        for ours, theirs in RIVALS.items()
        for size in sorted({size for _, size in laps})
        if (ours, size) in laps and (theirs, size) in laps
    ]
    return {
        "workers": workers,
        "laps": list(medians.values()),
        "ratios": ratios,
        "growth": list(_growth(medians)),
    }


def _growth(medians: dict[tuple[str, int], dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """What a further clip costs once all is up, from the smallest and the largest lap of each."""
    for name in dict.fromkeys(name for name, _ in medians):
        sizes = sorted(size for other, size in medians if other == name)
        if len(sizes) > 1:
            few, many = sizes[0], sizes[-1]
            each = {size: medians[name, size]["cpu_s_per_clip"] for size in (few, many)}
            further = (each[many] * many - each[few] * few) / (many - few)
            yield {
                "contender": name,
                "from_clips": few,
                "to_clips": many,
                "cpu_ratio": round(each[many] / each[few], 3),
                "cpu_s_per_further_clip": round(further, 4),
                "start_cpu_s": round((each[few] - further) * few, 2),
            }


def _ratios(laps: Any, ours: str, theirs: str, size: int, field: str) -> list[float]:
    pairs = zip(laps[ours, size], laps[theirs, size], strict=True)
    return [getattr(one, field) / getattr(other, field) for one, other in pairs]


def _table(figures: dict[str, Any]) -> str:
    lines = [f"{'contender':10} {'clips':>6} {'CPU s/clip':>11} {'clips/s':>8}"]
    lines += [
        f"{lap['contender']:10} {lap['clips']:6d} {lap['cpu_s_per_clip']:11.3f} "
        f"{lap['clips_per_s']:8.2f}"
        for lap in figures["laps"]
    ]
    lines += [
        f"{one['contender']} / {one['of']} at {one['clips']} clips: rate {one['rate']:.2f}, "
        f"clips per CPU second {one['cpu']:.2f} (wanted {one['wanted']})"
        for one in figures["ratios"]
    ]
    lines += [
        f"{one['contender']} from {one['from_clips']} to {one['to_clips']} clips: cost per clip x "
        f"{one['cpu_ratio']:.2f}; a further clip {one['cpu_s_per_further_clip']:.3f} CPU s, "
        f"start-up {one['start_cpu_s']:.1f} CPU s"
        for one in figures["growth"]
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
