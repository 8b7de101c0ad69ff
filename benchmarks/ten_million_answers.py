"""What N stored answers cost a driver: writing them, opening the table, and finding out what is due.

    python benchmarks/ten_million_answers.py --rows 100000
    python benchmarks/ten_million_answers.py --rows 10000000 --folder kept --json

The table's own writer makes the answers: one question in a hundred has none, and one in a hundred failed. Each
part then runs in a process of its own: opening the table and checking its keys, a resume with nothing due, one
that finds the missing hundredth, and one that asks the failures again. Questions come in another order than
rows lie in, and what was asked is compared with what is missing, key by key. Ten million rows take about a
quarter of an hour to write, and 2 GB.
"""

import argparse
import hashlib
import itertools
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from peak_memory import peak_mib

from unreel.asking.answer_table import ANSWERS
from unreel.core.content_ids import digest
from unreel.engine.location import StorageLocation
from unreel.engine.run import ALL_FAILURES, run_pending_questions
from unreel.engine.stage import Row, Stage, WorkerResources
from unreel.engine.table import LanceTable
from unreel.engine.table_writer import TableWriter
from unreel.engine.writer_lock import build_writer_lock

AT_ONCE = 50_000
STRIDE = 1_000_003
MISSING, FAILED = 7, 13
PARTS = ("write", "open", "nothing", "missing", "failed")
SYLLABLES = (
    "ba",
    "ren",
    "tu",
    "li",
    "mos",
    "ke",
    "sha",
    "dor",
    "ni",
    "vel",
    "pa",
    "ru",
    "gi",
    "stan",
    "o",
    "fe",
)
WORDS = [first + second for first in SYLLABLES for second in SYLLABLES]


class Counts(Stage):
    """Answers at once, and remembers the numbers of the questions."""

    resources = WorkerResources(cpus=0, in_flight=64)

    def __init__(self) -> None:
        self.asked: list[int] = []

    async def __call__(self, row: Row) -> Row:
        self.asked.append(row.pop("_number"))
        return row | {"text": "<answer>1</answer>", "latency_us": 1}


def key(number: int) -> str:
    """The key of a question."""
    return digest("question", str(number))


def answer(number: int) -> Row:
    """A stored row: about 300 characters of text, or a failure."""
    shared = {"key": key(number), "clip": digest("clip", str(number)), "second": ""}
    asked = {"reviewer": "recorded", "protocol": "reality", "protocol_version": 1}
    row = shared | asked | {"condition": "benchmark"}
    if number % 100 == FAILED:
        return row | {"failure_reason": "refused", "failure_detail": "HTTP 429"}
    drawn = hashlib.blake2b(str(number).encode(), digest_size=48).digest()
    text = f"<think>{' '.join(WORDS[at] for at in drawn)}</think><answer>{number % 2}</answer>"
    cost = {"input_tokens": 900 + number % 97, "output_tokens": 60, "cost_usd": 0.0004}
    return row | cost | {"text": text, "latency_us": 800_000 + number % 9973}


def write(table: LanceTable, n: int) -> dict[str, Any]:
    """Commit the answers, and tell how long that took beside making them."""
    numbers = (number for number in range(n) if number % 100 != MISSING)
    spent = 0.0
    with build_writer_lock(table.place) as lock:
        writer = TableWriter(table, lock=lock, observe=lambda _step, _rows: None)
        while rows := [answer(number) for number in itertools.islice(numbers, AT_ONCE)]:
            began = time.perf_counter()
            writer.append(rows)
            spent += time.perf_counter() - began
    n_bytes = sum(file.stat().st_size for file in table.place.path.rglob("*") if file.is_file())
    stored = table.count()
    return {
        "stored": stored,
        "rows_per_s": round(stored / spent),
        "bytes_per_row": round(n_bytes / stored),
    }


def questions(n: int, *, without: int | None = None) -> Iterator[Row]:
    """All questions, far from the order of the rows."""
    for place in range(n):
        number = place * STRIDE % n
        if number % 100 != without:
            yield {"key": key(number), "_number": number}


def resume(table: LanceTable, n: int, part: str) -> dict[str, Any]:
    """One run over all questions; what it asks must be what `part` names."""
    stage, worked = Counts(), time.process_time()
    without, retry = (MISSING if part == "nothing" else None), ()
    wanted = {"nothing": None, "missing": MISSING, "failed": FAILED}[part]
    summary = run_pending_questions(
        questions(n, without=without),
        [stage],
        table=table,
        retry_failed=ALL_FAILURES if part == "failed" else retry,
    )
    expected = [number for number in range(n) if number % 100 == wanted]
    if sorted(stage.asked) != expected:
        sys.exit(
            f"{part}: asked {len(stage.asked)} questions, not the {len(expected)} that are due"
        )
    n_questions = summary.already + len(stage.asked)
    return {
        "questions": n_questions,
        "asked": len(stage.asked),
        "cpu_us_per_question": round((time.process_time() - worked) / n_questions * 1e6, 2),
    }


def do(part: str, folder: Path, n: int) -> dict[str, Any]:
    """One part, in this process."""
    table = LanceTable(StorageLocation(str(folder / "answers.lance")), ANSWERS)
    began, worked = time.perf_counter(), time.process_time()
    told: dict[str, Any] = {}
    if part == "write":
        told = write(table, n)
    elif part == "open":
        table.check()
    else:
        told = resume(table, n, part)
    return told | {
        "seconds": round(time.perf_counter() - began, 2),
        "cpu_s": round(time.process_time() - worked, 2),
        "peak_mib": peak_mib(),
    }


def measure(folder: Path, n: int, parts: list[str]) -> dict[str, Any]:
    """Each part in a process of its own."""
    told: dict[str, Any] = {"rows": n}
    for part in parts:
        typed = [
            sys.executable,
            __file__,
            "--part",
            part,
            "--rows",
            str(n),
            "--folder",
            str(folder),
        ]
        done = subprocess.run(typed, check=True, stdout=subprocess.PIPE, text=True)
        told[part] = json.loads(done.stdout)
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument(
        "--folder", type=Path, help="where the table is kept; by default it goes away"
    )
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.part:
        print(json.dumps(do(asked.part, asked.folder, asked.rows)))
        return
    with tempfile.TemporaryDirectory(prefix="unreel-") as scratch:
        told = measure(asked.folder or Path(scratch), asked.rows, asked.parts)
    if asked.json:
        print(json.dumps(told))
        return
    print(f"{told.pop('rows'):,} questions")
    for part, figures in told.items():
        print(f"{part:8}", "  ".join(f"{name} {value:,}" for name, value in figures.items()))


if __name__ == "__main__":
    main()
