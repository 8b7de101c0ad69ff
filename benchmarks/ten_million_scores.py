"""Measure the commands that read a complete run by its number of answers: seconds, processor time, peak memory.

    python benchmarks/ten_million_scores.py --rows 10000 --rows 100000
    python benchmarks/ten_million_scores.py --protocol trace --way score --way report --way compare --rows 100000
    python benchmarks/ten_million_scores.py --rows 10000000 --folder FOLDER

Each run is complete: a benchmark of as many clips, its survey, and an answer to every question under its right key,
all written by the tables' own writer; there are no media, and none is opened. `unreel score`, an `unreel eval` with
nothing due, `unreel report` and `unreel compare` of two such runs then run as processes of their own, whose peak
memory is reported. The answers of `trace` differ in label, box, time and explanation from clip to clip. With
`--folder` the runs stay there, and an existing one is measured again.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import peak_memory

from facts import FACTS as DRAWN
from unreel.benchmarks.loader import open_benchmark
from unreel.benchmarks.statistics import compute_benchmark_identity
from unreel.core.content_ids import digest
from unreel.core.question import Question
from unreel.core.settings import read_environment_settings
from unreel.engine.clip_facts import FACTS
from unreel.engine.storage_access import compute_file_name_key
from unreel.engine.table import LanceTable
from unreel.engine.table_writer import TableWriter
from unreel.engine.writer_lock import build_writer_lock
from unreel.evaluation.recipe import validate_eval_recipe
from unreel.evaluation.run_job import EvalRun, build_reviewer_factory, write_run_recipe
from unreel.evaluation.run_lookup import build_eval_run

BATCH = 50_000
CREATORS = ("Kling", "Pika", "Sora", "Veo")
MODEL = "coin"
PROTOCOLS = ("reality", "trace")
_ANEW = os.O_CREAT | os.O_WRONLY | os.O_TRUNC
WAYS = ("score", "resume", "report", "compare")
DEFAULT_WAYS = ("score", "resume")
SHORT_SCENE = 4
"""Clips of a scene where scenes are asked for."""
CATEGORIES = ("object-distortion", "sudden-blurring", "object-merging", "unexpected-move")
WORDS = (
    *("hand", "wheel", "shadow", "window", "face", "leaf", "water", "texture", "edge", "letter"),
    *(
        "melts",
        "flickers",
        "bends",
        "vanishes",
        "splits",
        "drifts",
        "repeats",
        "blurs",
        "into",
        "behind",
    ),
)


@dataclass(frozen=True)
class Lap:
    """What one command took."""

    way: str
    rows: int
    wall_s: float
    cpu_s: float
    peak_mib: float
    us_a_row: float
    """Of the processor."""


def main() -> None:
    asked = _arguments()
    laps: list[Lap] = []
    os.environ["UNREEL_TABLE_ROWS"] = str(max(asked.rows))
    with tempfile.TemporaryDirectory(prefix="unreel-scores-") as own:
        for rows in asked.rows:
            name = f"{rows}{'-scenes' if asked.scenes else ''}"
            folder = (asked.folder or Path(own)) / (
                name if asked.protocol == "reality" else f"{asked.protocol}-{name}"
            )
            ways = asked.way or DEFAULT_WAYS
            runs = ("run", "other") if "compare" in ways else ("run",)
            for run in runs:
                if not (folder / run / "recipe.json").exists():
                    make(folder, run, rows, protocol=asked.protocol, scenes=asked.scenes)
            for way in ways:
                laps.append(_measure(folder, way, rows, asked.protocol))
                print(laps[-1], file=sys.stderr)
    told = [asdict(lap) for lap in laps]
    print(json.dumps(told, indent=2) if asked.json else _table(laps))


def _arguments() -> Any:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, action="append", help="answers; repeatable")
    parser.add_argument("--folder", type=Path, help="where runs are made, and stay")
    parser.add_argument("--protocol", choices=PROTOCOLS, default="reality")
    parser.add_argument("--way", choices=WAYS, action="append", help="one of them; repeatable")
    parser.add_argument(
        "--scenes", action="store_true", help=f"{SHORT_SCENE} clips a scene, not one"
    )
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    asked.rows = asked.rows or [10_000, 100_000]
    return asked


def make(folder: Path, name: str, n: int, *, protocol: str, scenes: bool) -> None:
    """Write a complete run `name` of `n` answers below `folder`, and its benchmark if it is missing."""
    bench = folder / "bench"
    if not bench.exists():
        bench.mkdir(parents=True)
        with (bench / "metadata.jsonl").open("w", encoding="utf-8") as file:
            for number in range(n):
                entry = _entry(number, protocol=protocol, scenes=scenes)
                file.write(json.dumps(entry) + "\n")
    recipe = validate_eval_recipe({"benchmark": str(bench), "protocol": protocol, "model": MODEL})
    run = build_eval_run(recipe, folder / name, read_environment_settings(), trusted=True)
    reviewer = build_reviewer_factory(recipe, access=run.access, clips=()).name
    _write(run.clips, _clips(n))
    _write(run.answers, _answers(n, run, reviewer, protocol=protocol))
    write_run_recipe(run, reviewer, compute_benchmark_identity(open_benchmark(bench)))


def _entry(number: int, *, protocol: str, scenes: bool) -> dict[str, Any]:
    creator = "" if number % 2 else CREATORS[number // 2 % len(CREATORS)]
    entry: dict[str, Any] = {
        "file_name": f"media/{number:08d}.mp4",
        "name": f"clip {number:08d}",
        "label": "generated" if creator else "real",
        "creator": creator,
    }
    if scenes:
        entry["group"] = f"scene {number // SHORT_SCENE:08d}"
    if protocol == "trace":
        entry["traces"] = [_trace(Random(f"truth {number}"))] if creator else []
    return entry


def _trace(rng: Random) -> dict[str, Any]:
    start_us = rng.randrange(0, 1_000_000, 1_000)
    x0, y0 = round(rng.uniform(0, 0.5), 3), round(rng.uniform(0, 0.5), 3)
    box = {"x0": x0, "y0": y0, "x1": round(x0 + 0.4, 3), "y1": round(y0 + 0.3, 3)}
    return {
        "span": {"start_us": start_us, "end_us": start_us + 500_000},
        "track": [{"at_us": start_us, "box": box}],
        "categories": [rng.choice(CATEGORIES)],
        "explanation": _explanation(rng),
    }


def _explanation(rng: Random) -> str:
    words = " ".join(rng.choices(WORDS, k=12))
    return f"The {words} and this lasts for {rng.randrange(10_000)} instants."


def _clip(number: int) -> str:
    return digest("drawn clip", str(number))


def _clips(n: int) -> Iterator[dict[str, Any]]:
    for number in range(n):
        video = replace(DRAWN.video, duration_s=Fraction(50 + number % 97, 25))
        drawn = replace(DRAWN, size_bytes=1_000 + number, video=video)
        facts = FACTS.dump_json(drawn).decode()
        place = f"media/{number:08d}.mp4"
        row = {"key": compute_file_name_key(place), "name": f"clip {number:08d}", "location": place}
        yield row | {"clip": _clip(number), "facts": facts, "mark": ""}


def _answers(n: int, run: EvalRun, reviewer: str, *, protocol: str) -> Iterator[dict[str, Any]]:
    rng = Random(f"{run.place.uri.rpartition('/')[2]} {n}")
    text_of = _trace_text if protocol == "trace" else _reality_text
    instrument, (condition,) = run.scope.instrument, run.scope.conditions
    for number in range(n):
        clip = _clip(number)
        question = Question(subject=clip, instrument=instrument, condition=condition)  # type: ignore[arg-type]
        is_real = bool(number % 2)
        yield {
            "key": question.key(reviewer),
            "reviewer": reviewer,
            "clip": clip,
            "protocol": protocol,
            "protocol_version": instrument.version,
            "condition": str(condition),
            "text": text_of(is_real if rng.random() < 0.8 else not is_real, rng),
            "latency_us": 900_000,
            "input_tokens": 2000,
            "output_tokens": 20,
        } | ({"notes": json.dumps({"box_space": "permille"})} if protocol == "trace" else {})


def _thought(rng: Random) -> str:
    return f"<think>At {rng.randrange(1_000)} ms {' '.join(rng.choices(WORDS, k=8))}.</think>"


def _reality_text(says_real: bool, rng: Random) -> str:  # noqa: FBT001  one of two texts
    return f"{_thought(rng)}<answer>{int(says_real)}</answer>"


def _trace_text(says_real: bool, rng: Random) -> str:  # noqa: FBT001  one of two texts
    thought = _thought(rng)
    if says_real:
        return f"{thought}\nREAL"
    x0, y0 = rng.randrange(500), rng.randrange(500)
    box = f"[{x0}, {y0}, {x0 + rng.randrange(100, 500)}, {y0 + rng.randrange(100, 500)}]"
    return (
        f"{thought}\nFAKE\n<coordinates>{box}</coordinates>\n"
        f"<start_time>{rng.randrange(1_000) / 1_000}</start_time>\n"
        f"<explanation>{_explanation(rng)}</explanation>"
    )


def _write(table: LanceTable, rows: Iterator[dict[str, Any]]) -> None:
    with build_writer_lock(table.place) as lock:
        writer = TableWriter(table, lock=lock, observe=lambda _step, _rows: None)
        while batch := list(islice(rows, BATCH)):
            writer.append(batch)


def _measure(folder: Path, way: str, rows: int, protocol: str) -> Lap:
    run, bench = str(folder / "run"), str(folder / "bench")
    typed = {
        "score": ["score", run, "--json"],
        "resume": ["eval", bench, "--protocol", protocol, "--model", MODEL, "--out", run],
        "report": ["report", run, "--out", str(folder / "report")],
        "compare": ["compare", run, str(folder / "other"), "--json"],
    }[way]
    shutil.rmtree(folder / "report", ignore_errors=True)
    began_s = time.monotonic()
    pid = os.posix_spawn(
        sys.executable,
        [sys.executable, peak_memory.__file__, str(folder / "peak"), *typed],
        os.environ,
        file_actions=[(os.POSIX_SPAWN_OPEN, 1, str(folder / f"{way}.out"), _ANEW, 0o600)],
    )
    _, status, usage = os.wait4(pid, 0)
    wall_s = time.monotonic() - began_s
    if code := os.waitstatus_to_exitcode(status):
        sys.exit(f"{way} of {rows} answers ended with status {code}")
    cpu_s = usage.ru_utime + usage.ru_stime
    return Lap(
        way=way,
        rows=rows,
        wall_s=round(wall_s, 1),
        cpu_s=round(cpu_s, 1),
        peak_mib=int((folder / "peak").read_text()),
        us_a_row=round(1e6 * cpu_s / rows, 1),
    )


def _table(laps: list[Lap]) -> str:
    lines = ["| command | answers | seconds | processor s | peak MiB | us an answer |"]
    lines.append("|---|---|---|---|---|---|")
    lines += [
        f"| {lap.way} | {lap.rows:,} | {lap.wall_s} | {lap.cpu_s} | {lap.peak_mib} | {lap.us_a_row} |"
        for lap in laps
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
