"""What unreel itself costs: the same clips, frames and 50 ms server for everyone, one after the other.

    python benchmarks/eval_cost.py --clips FOLDER
    python benchmarks/eval_cost.py --inspect VENV/bin/python --lmms VENV/bin/python

Processor time is that of a contender and of every process it started and awaited; the server's is not
in it. Rounds take turns, so that a busy machine is busy for all; figures are medians over rounds.
Nothing leaves this machine.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
DELAY_S = 0.05
MOST_SAMPLES = 2_000
SUFFIXES = {".mp4", ".webm", ".mkv", ".mov"}


@dataclass(frozen=True)
class Contender:
    """One way to do the work."""

    name: str
    script: str
    arguments: tuple[str, ...] = ()
    python: str = sys.executable


@dataclass(frozen=True)
class Lap:
    """What one contender took for all samples."""

    cpu_ms: float
    """Of processor time for one sample."""
    per_s: float
    """Samples in a second, from the first to the last where the contender tells it."""
    peak_mb: float


def main() -> None:
    asked = _arguments()
    contenders = list(_contenders(asked))
    laps: dict[str, list[Lap]] = {contender.name: [] for contender in contenders}
    with tempfile.TemporaryDirectory(prefix="unreel-cost-") as folder, _server() as url:
        listing = _list_clips(asked.clips, Path(folder), asked.samples)
        for number in range(asked.rounds):
            for contender in contenders:
                out = Path(folder) / f"{contender.name.replace(' ', '-')}-{number}"
                out.mkdir()
                lap = _run(contender, listing, url=url, out=out, expected=asked.samples)
                laps[contender.name].append(lap)
                print(f"round {number + 1}, {contender.name}: {lap}", file=sys.stderr)
    figures = {name: _summary(each) for name, each in laps.items()}
    print(json.dumps(figures, indent=2) if asked.json else _table(figures))


def _arguments() -> Any:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clips", type=Path, help="folder of clips; without it some are drawn")
    parser.add_argument("--samples", type=int, default=144)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", action="append", help="name of a contender; repeatable")
    parser.add_argument("--inspect", help="python of an environment with inspect_ai, av, pillow")
    parser.add_argument("--lmms", help="python of an environment with lmms-eval, av, pillow")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    if not 1 <= asked.samples <= MOST_SAMPLES or asked.rounds < 1:
        parser.error(f"--samples goes from 1 to {MOST_SAMPLES}, --rounds from 1")
    return asked


def _contenders(asked: Any) -> Iterator[Contender]:
    known = [
        Contender("bare AsyncOpenAI loop", "bare_loop.py"),
        Contender("unreel local", "unreel_eval.py", ("local",)),
        Contender("unreel local trusted", "unreel_eval.py", ("local", "trusted")),
        Contender("bare Ray Data", "bare_ray.py"),
        Contender("unreel ray", "unreel_eval.py", ("ray",)),
        Contender("unreel ray trusted", "unreel_eval.py", ("ray", "trusted")),
    ]
    if asked.inspect:
        known.append(Contender("inspect_ai", "inspect_loop.py", python=asked.inspect))
    if asked.lmms:
        known.append(Contender("lmms-eval", "lmms_loop.py", python=asked.lmms))
    return (each for each in known if not asked.only or each.name in asked.only)


@contextmanager
def _server() -> Iterator[str]:
    command = [sys.executable, str(HERE / "answering.py"), str(DELAY_S)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
        finally:
            server.terminate()


def _list_clips(source: Path | None, folder: Path, samples: int) -> Path:
    """A file of paths, each to a clip with bytes of its own: a padding box tells copies apart."""
    originals = _found(source) if source else list(_drawn(folder, min(6, samples)))
    paths = []
    for number in range(samples):
        original = originals[number % len(originals)]
        copy = folder / f"clip-{number:04d}{original.suffix}"
        padding = (16).to_bytes(4, "big") + b"free" + number.to_bytes(8, "big")
        copy.write_bytes(original.read_bytes() + (padding if copy.suffix == ".mp4" else b""))
        paths.append(str(copy))
    listing = folder / "clips.txt"
    listing.write_text("\n".join(paths), encoding="utf-8")
    return listing


def _found(source: Path) -> list[Path]:
    found = sorted(path for path in source.rglob("*") if path.suffix in SUFFIXES)
    return found or sys.exit(f"no clip lies under {source}")


def _drawn(folder: Path, count: int) -> Iterator[Path]:
    sys.path.append(str(Path(__file__).parents[1] / "tests"))
    from synthesise import ClipRecipe, synthesise

    for seed in range(count):
        path = folder / f"drawn-{seed}.mp4"
        recipe = ClipRecipe(width=640, height=360, n_frames=48, gop=24, seed=seed)
        path.write_bytes(synthesise(recipe))
        yield path


def _run(contender: Contender, listing: Path, *, url: str, out: Path, expected: int) -> Lap:
    script = HERE / "contenders" / contender.script
    command = [contender.python, str(script), str(listing), url, str(out), *contender.arguments]
    calm = dict.fromkeys(("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "NO_COLOR"), "1")
    began_s = time.monotonic()
    with (out / "stdout").open("w+") as said, (out / "stderr").open("w+") as talk:
        child = subprocess.Popen(command, stdout=said, stderr=talk, env=os.environ | calm)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        took_s = time.monotonic() - began_s
        said.seek(0)
        lines = said.read().splitlines()
        talk.seek(0)
        if child.returncode or not lines:
            sys.exit(f"{contender.name} ended with {child.returncode}:\n{talk.read()[-3000:]}")
    told = json.loads(lines[-1])
    if told["n"] != expected:
        sys.exit(f"{contender.name} answered {told['n']} of {expected}")
    return Lap(
        cpu_ms=round(1000 * (usage.ru_utime + usage.ru_stime) / expected, 1),
        per_s=round(expected / told.get("seconds", took_s), 2),
        peak_mb=round(usage.ru_maxrss / 1024),
    )


def _summary(laps: list[Lap]) -> dict[str, Any]:
    cpu = [lap.cpu_ms for lap in laps]
    rate = [lap.per_s for lap in laps]
    return {
        "cpu_ms": statistics.median(cpu),
        "cpu_ms_range": [min(cpu), max(cpu)],
        "per_s": statistics.median(rate),
        "per_s_range": [min(rate), max(rate)],
        "peak_mb": statistics.median(lap.peak_mb for lap in laps),
        "rounds": len(laps),
    }


def _table(figures: dict[str, dict[str, Any]]) -> str:
    bare = figures.get("bare AsyncOpenAI loop", {}).get("cpu_ms")
    ray = figures.get("bare Ray Data", {}).get("per_s")
    lines = [
        "| contender | CPU ms per sample | of the bare loop | samples/s | of bare Ray Data |",
        "|---|---|---|---|---|",
    ]
    for name, each in figures.items():
        on_ray = "ray" in name.lower()
        cpu = "not counted" if on_ray else f"{each['cpu_ms']} {each['cpu_ms_range']}"
        ratio = "" if on_ray or not bare else f"{each['cpu_ms'] / bare:.2f}"
        share = f"{each['per_s'] / ray:.2f}" if on_ray and ray else ""
        lines.append(
            f"| {name} | {cpu} | {ratio} | {each['per_s']} {each['per_s_range']} | {share} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
