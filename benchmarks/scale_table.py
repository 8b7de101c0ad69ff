"""What very many clips cost, job by job, from the figures that the other scripts here print.

    python benchmarks/curate_throughput.py --sizes 100 2000 --rounds 1 --only local --json > figures/throughput.json
    python benchmarks/million_pieces.py --rows 100000 --json > figures/pieces.json
    python benchmarks/eval_cost.py --only "unreel local" --json > figures/eval.json
    python benchmarks/ten_million_answers.py --rows 10000000 --json > figures/answers.json
    python benchmarks/ten_million_scores.py --rows 1000000 --way score --json > figures/scores.json
    python benchmarks/ledger_rows.py --on sqlite --json > figures/ledger.json
    python benchmarks/scale_table.py figures

Prints the table of docs/scale.md. What no script can measure is a flag, and stands in the table as assumed: prices,
the size of a clip, what a service charges (`unreel eval --dry-run` tells it for a model), and how long a GPU or a
person takes.
"""

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HOUR_S = 3600


@dataclass(frozen=True)
class Line:
    """One thing that a job takes for each clip, in a unit, and its price where it has one."""

    job: str
    what: str
    each: float
    unit: str
    usd_an_hour: float | None = None
    usd: float | None = None


def main() -> None:
    asked = _arguments()
    print(f"| job | what | each | {_count(asked.clips)} |\n|---|---|---|---|")
    for line in _lines({file.stem: _read(file) for file in asked.figures.glob("*.json")}, asked):
        print(f"| {line.job} | {line.what} | {_each(line)} | {_all(line, asked.clips)} |")


def _arguments() -> Any:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("figures", type=Path, help="folder of the files that are named above")
    parser.add_argument("--clips", type=int, default=100_000_000)
    parser.add_argument("--core-hour", type=float, default=0.04, help="$, assumed")
    parser.add_argument("--gpu-hour", type=float, default=2.0, help="$, assumed")
    parser.add_argument("--person-hour", type=float, default=20.0, help="$, assumed")
    parser.add_argument("--clip-mb", type=float, default=3.3, help="assumed")
    parser.add_argument("--question-usd", type=float, default=0.001, help="assumed")
    parser.add_argument("--gpu-seconds", type=float, default=1.0, help="a clip, assumed")
    parser.add_argument("--task-seconds", type=float, default=11.0, help="of a person, assumed")
    parser.add_argument("--votes", type=int, default=3, help="people a clip, assumed")
    return parser.parse_args()


def _read(file: Path) -> Any:
    """One JSON text, or the last of several lines: the largest size that was measured."""
    text = file.read_text(encoding="utf-8")
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return json.loads(text.splitlines()[-1])


def _lines(figures: dict[str, Any], asked: Any) -> Iterator[Line]:
    core, pieces, answers = asked.core_hour, figures["pieces"], figures["answers"]
    scan_s, driver_s = _scan_s(figures["throughput"]), pieces["processor_s"] / pieces["rows"]
    yield Line("curate", "workers: decode, split, 8 frames, hash", scan_s, "core-s", core)
    yield Line("curate", "the driver, all steps", driver_s, "core-s", core)
    yield Line("curate", "findings and pieces on disk", pieces["bytes_a_piece"], "B")
    yield Line("curate", "the clips themselves (assumed)", asked.clip_mb * 1e6, "B")
    ask_s = figures["eval"]["unreel local"]["cpu_ms"] / 1000
    score_s = figures["scores"][-1]["us_a_row"] / 1e6
    for job in ("eval with an API", "eval on GPUs"):
        yield Line(job, "frames, request, answer, commit", ask_s, "core-s", core)
        yield Line(job, "score", score_s, "core-s", core)
        yield Line(job, "an answer on disk", answers["write"]["bytes_per_row"], "B")
        if job == "eval on GPUs":
            yield Line(job, "the model (assumed)", asked.gpu_seconds, "GPU-s", asked.gpu_hour)
        else:
            yield Line(job, "the service (assumed)", 1, "question", usd=asked.question_usd)
    resume_s = answers["nothing"]["cpu_us_per_question"] / 1e6
    yield Line("any eval", "a resume with nothing due", resume_s, "core-s", core)
    ledger = {one["what"]: one for one in figures["ledger"]}
    for what, act in (("keep a judgement", "keep all"), ("read it", "read all, one by one")):
        each_s = asked.votes * ledger[act]["cpu_s"] / ledger[act]["rows"]
        yield Line("annotate", f"{what}, {asked.votes} a clip", each_s, "core-s", core)
    people_s = asked.votes * asked.task_seconds
    yield Line("annotate", "people (assumed)", people_s, "person-s", asked.person_hour)


def _scan_s(figures: dict[str, Any]) -> float:
    """What a further clip costs, or, from laps of one size, a clip with its share of the start-up."""
    for one in figures.get("growth", []):
        if one["contender"] == "local":
            return float(one["cpu_s_per_further_clip"])
    laps = [lap for lap in figures["laps"] if lap["contender"] == "local"]
    return float(max(laps, key=lambda lap: lap["clips"])["cpu_s_per_clip"])


def _each(line: Line) -> str:
    if line.unit == "B":
        return _size(line.each)
    small = line.each < 0.01
    shown = f"{line.each * 1e6:,.0f} µ" if small else f"{line.each:,.2f} "
    return f"{line.usd:g} $" if line.usd is not None else f"{shown}{line.unit}"


def _all(line: Line, clips: int) -> str:
    if line.unit == "B":
        return _size(line.each * clips)
    if line.usd is not None:
        return f"{_figure(line.usd * clips)} $"
    hours = line.each * clips / HOUR_S
    assert line.usd_an_hour is not None
    unit = line.unit.replace("-s", "-hours")
    return f"{_figure(hours)} {unit}, {_figure(hours * line.usd_an_hour)} $"


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}"


def _count(clips: int) -> str:
    return f"{clips / 1e6:g} M clips"


def _size(size_bytes: float) -> str:
    for unit, power in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size_bytes >= power:
            return f"{size_bytes / power:,.1f} {unit}"
    return f"{size_bytes:.0f} B"


if __name__ == "__main__":
    main()
