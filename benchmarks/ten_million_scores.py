"""What scoring and taking up a run take by its answers: seconds, memory, and microseconds for an answer.

    python benchmarks/ten_million_scores.py --rows 10000 --rows 100000
    python benchmarks/ten_million_scores.py --rows 10000000 --folder FOLDER

Each run is whole: a benchmark of as many clips, its survey, an answer to every question under its right key, all
by the tables' own writer; no media are there, and none is opened. `unreel score` and an `unreel eval` with nothing
due then run as processes of their own, whose peak memory is told. With `--folder` the runs stay there, and one that
is there already is measured again.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import peak_memory

from facts import FACTS as DRAWN
from unreel.benchmarks.opening import open_benchmark
from unreel.benchmarks.reading import identify
from unreel.core.identity import digest
from unreel.core.question import Question
from unreel.core.settings import read_settings
from unreel.engine.access import file_key
from unreel.engine.lock import writer_lock
from unreel.engine.survey import FACTS
from unreel.engine.table import Table
from unreel.engine.table_writer import TableWriter
from unreel.evaluate.finding import plan_run
from unreel.evaluate.fitting import describe_reviewer
from unreel.evaluate.job import Run, keeper_of
from unreel.evaluate.recipe import check_recipe

BATCH = 50_000
CREATORS = ("Kling", "Pika", "Sora", "Veo")
MODEL, PROTOCOL = "coin", "reality"
_ANEW = os.O_CREAT | os.O_WRONLY | os.O_TRUNC
WAYS = ("score", "resume")
SHORT_SCENE = 4
"""Clips of a scene where scenes are asked for."""


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
            folder = (asked.folder or Path(own)) / f"{rows}{'-scenes' if asked.scenes else ''}"
            if not (folder / "run" / "recipe.json").exists():
                make(folder, rows, scenes=asked.scenes)
            for way in asked.way or WAYS:
                laps.append(_measure(folder, way, rows))
                print(laps[-1], file=sys.stderr)
    told = [asdict(lap) for lap in laps]
    print(json.dumps(told, indent=2) if asked.json else _table(laps))


def _arguments() -> Any:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, action="append", help="answers; repeatable")
    parser.add_argument("--folder", type=Path, help="where runs are made, and stay")
    parser.add_argument("--way", choices=WAYS, action="append", help="one of them; repeatable")
    parser.add_argument(
        "--scenes", action="store_true", help=f"{SHORT_SCENE} clips a scene, not one"
    )
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    asked.rows = asked.rows or [10_000, 100_000]
    return asked


def make(folder: Path, n: int, *, scenes: bool) -> None:
    """A whole run of `n` answers below `folder`."""
    bench = folder / "bench"
    bench.mkdir(parents=True)
    with (bench / "metadata.jsonl").open("w", encoding="utf-8") as file:
        for number in range(n):
            file.write(json.dumps(_entry(number, scenes=scenes)) + "\n")
    recipe = check_recipe({"benchmark": str(bench), "protocol": PROTOCOL, "model": MODEL})
    run = plan_run(recipe, folder / "run", read_settings(), trusted=True)
    reviewer = describe_reviewer(recipe, access=run.access, learn_from=lambda: iter(())).name
    _write(run.clips, _clips(n))
    _write(run.answers, _answers(n, run, reviewer))
    keeper_of(run).keep(reviewer, identify(open_benchmark(bench)))


def _entry(number: int, *, scenes: bool) -> dict[str, Any]:
    creator = "" if number % 2 else CREATORS[number // 2 % len(CREATORS)]
    told = {"file_name": f"media/{number:08d}.mp4", "name": f"clip {number:08d}"}
    told |= {"label": "generated" if creator else "real", "creator": creator}
    return told | ({"group": f"scene {number // SHORT_SCENE:08d}"} if scenes else {})


def _clip(number: int) -> str:
    return digest("drawn clip", str(number))


def _clips(n: int) -> Iterator[dict[str, Any]]:
    facts = FACTS.dump_json(DRAWN).decode()
    for number in range(n):
        place = f"media/{number:08d}.mp4"
        row = {"key": file_key(place), "name": f"clip {number:08d}", "location": place}
        yield row | {"clip": _clip(number), "facts": facts, "mark": ""}


def _answers(n: int, run: Run, reviewer: str) -> Iterator[dict[str, Any]]:
    rng = Random(n)
    instrument, (condition,) = run.scope.instrument, run.scope.conditions
    for number in range(n):
        clip = _clip(number)
        question = Question(subject=clip, instrument=instrument, condition=condition)  # type: ignore[arg-type]
        right = rng.random() < 0.8
        yield {
            "key": question.key(reviewer),
            "reviewer": reviewer,
            "clip": clip,
            "protocol": PROTOCOL,
            "protocol_version": instrument.version,
            "condition": str(condition),
            "text": f"<think>It moves evenly.</think><answer>{(number % 2) ^ (not right)}</answer>",
            "latency_us": 900_000,
            "input_tokens": 2000,
            "output_tokens": 20,
        }


def _write(table: Table, rows: Iterator[dict[str, Any]]) -> None:
    with writer_lock(table.place) as lock:
        writer = TableWriter(table, lock=lock, observe=lambda _step, _rows: None)
        while batch := list(islice(rows, BATCH)):
            writer.append(batch)


def _measure(folder: Path, way: str, rows: int) -> Lap:
    run, bench = str(folder / "run"), str(folder / "bench")
    resume = ["eval", bench, "--protocol", PROTOCOL, "--model", MODEL, "--out", run]
    typed = ["score", run, "--json"] if way == "score" else resume
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
