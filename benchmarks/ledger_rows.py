"""What a ledger of very many judgements costs: time and memory of keeping, keeping again and reading.

    python benchmarks/ledger_rows.py --rows 1000000

Prints the table of docs/performance.md, on SQLite and, where PostgreSQL is installed, on a private server that is gone
afterwards. Every fifth judgement is a trace with a track of ten boxes, the others are votes.
"""

import argparse
import gc
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from peak_memory import peak_mib

import postgres
from campaigns import CAMPAIGN, record_of, task_of
from unreel.annotation.campaign import AnnotationRecord, TraceAnswer
from unreel.annotation.campaign_state import iter_valid_judgements, read_campaign_records
from unreel.annotation.ledger.connection import open_ledger
from unreel.annotation.ledger.ledger import Ledger
from unreel.core.box import Box
from unreel.core.judgement import Label
from unreel.core.span import TimeSpan
from unreel.core.trace import BoxAt, Category, Trace

PEOPLE = tuple(f"p{n:02}" for n in range(20))
TRACK = tuple(BoxAt(n * 100_000, Box(0.1, 0.2, 0.3, 0.4 + n / 100)) for n in range(10))
TRACED = TraceAnswer(
    label=Label.GENERATED,
    traces=(
        Trace(
            span=TimeSpan(0, 1_000_000),
            track=TRACK,
            categories=frozenset({Category.OBJECT_MERGING}),
            explanation="The left hand becomes part of the cup that it holds.",
        ),
    ),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--on", choices=["sqlite", "postgresql"], help="only one of the two")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    n = asked.rows
    told: list[dict[str, Any]] = []
    if asked.on != "postgresql":
        with tempfile.TemporaryDirectory() as folder:
            told += _measure("SQLite", str(Path(folder) / "ledger.db"), n)
    if asked.on != "sqlite":
        with postgres.running() as server:
            told += _measure("PostgreSQL", server.address(), n)
    print(json.dumps(told, indent=2) if asked.json else _table(told))


def _table(told: list[dict[str, Any]]) -> str:
    lines = ["| ledger | what | rows | seconds | CPU s | peak MB |", "|---|---|---|---|---|---|"]
    lines += [
        f"| {one['ledger']} | {one['what']} | {one['rows']:,} | {one['seconds']:.0f} | {one['cpu_s']:.0f} | {one['peak_mb']} |"
        for one in told
    ]
    return "\n".join(lines)


def _measure(name: str, address: str, n: int) -> Iterator[dict[str, Any]]:
    with open_ledger(address) as ledger:
        ledger.open_campaign(CAMPAIGN)
        ledger.add_tasks(CAMPAIGN.name, (task_of(f"c{i}") for i in range(n // len(PEOPLE) + 1)))
        for what, act in {
            "keep all": lambda: ledger.append(_records(n)),
            "keep all again": lambda: ledger.append(_records(n)),
            "read all, one by one": lambda: _count(ledger),
            "read the last 1,000": lambda: _count(ledger, after=_last(ledger) - 1000),
            "work out what stands": lambda: sum(
                1 for _ in iter_valid_judgements(read_campaign_records(ledger, "votes"))
            ),
        }.items():
            seconds, cpu_s, peak_mb, result = _timed(act)
            print(f"{name}, {what}: {cpu_s:.0f} s of processor", file=sys.stderr)
            yield {
                "ledger": name,
                "what": what,
                "rows": result,
                "seconds": round(seconds, 2),
                "cpu_s": round(cpu_s, 2),
                "peak_mb": peak_mb,
            }


def _records(n: int) -> Iterator[AnnotationRecord]:
    """Judgements of twenty people, with what a server would send for each."""
    raw = '{"annotation": %d, "result": [' + ", ".join(['{"x": 12.5, "y": 25.0}'] * 20) + "]}"
    for start in range(0, n, len(PEOPLE)):
        first = record_of(task_of(f"c{start // len(PEOPLE)}"))
        for place, person in enumerate(PEOPLE[: n - start]):
            value = first.outcome if place % 5 else TRACED
            yield replace(first, annotator=person, outcome=value, raw=raw % (start + place))


def _count(ledger: Ledger, after: int = 0) -> int:
    return sum(1 for _ in ledger.records("votes", after=after))


def _last(ledger: Ledger) -> int:
    from sqlalchemy import func, select

    from unreel.annotation.ledger.tables import annotations

    with ledger._engine.connect() as connection:  # noqa: SLF001  a cursor that a command would remember
        last: int = connection.execute(select(func.max(annotations.c.seq))).scalar_one()
        return last


def _timed(act: Callable[[], Any]) -> tuple[float, float, int, int]:
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")
    before_s, before_cpu_s = time.perf_counter(), time.process_time()
    result = act()
    seconds, cpu_s = time.perf_counter() - before_s, time.process_time() - before_cpu_s
    return seconds, cpu_s, peak_mib(), result


if __name__ == "__main__":
    main()
