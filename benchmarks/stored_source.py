"""What a driver spends on a source that is a table: `python benchmarks/stored_source.py --rows 100000`.

Makes a table of N rows of about a kilobyte with its own writer, then decides what is due of them, once with
addresses (`TableQuestionSource`) and once with whole rows, each in a process of its own. No stage is run: this is what
the one driver must do, whatever the workers cost.
"""

import argparse
import json
import pickle
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from peak_memory import peak_mib

from unreel.asking.answer_table import ANSWERS
from unreel.core.content_ids import digest
from unreel.engine.location import StorageLocation
from unreel.engine.pending_questions import PendingQuestionFilter
from unreel.engine.schema import TableSchema
from unreel.engine.stage import Row
from unreel.engine.table import LanceTable
from unreel.engine.table_questions import TableQuestionSource
from unreel.engine.table_writer import TableWriter
from unreel.engine.writer_lock import build_writer_lock

SOURCE = TableSchema(name="pieces", version=1, columns={"facts": "string", "location": "string"})
WRITTEN = 50_000
FACTS = "x" * 900


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=100_000)
    options.add_argument("--folder", type=Path, help="Where the table is kept; made where missing.")
    options.add_argument("--json", action="store_true")
    options.add_argument("--way", choices=["addresses", "rows"], help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.way:
        print(json.dumps(decide(given.folder, given.way)))
        return
    with tempfile.TemporaryDirectory() as spare:
        folder = given.folder or Path(spare)
        if not source(folder).exists():
            write(folder, given.rows)
        told = {way: follow(folder, way) for way in ("addresses", "rows")}
    if given.json:
        print(json.dumps({"rows": given.rows, "ways": told}))
        return
    print(f"{'way':10} {'due':>9} {'seconds':>8} {'cpu s':>7} {'bytes a row':>12} {'peak MiB':>9}")
    for way, one in told.items():
        figures = f"{one['due']:9} {one['seconds']:8.2f} {one['cpu_s']:7.2f}"
        print(f"{way:10} {figures} {one['bytes_a_row']:12.0f} {one['peak_mib']:9.0f}")


def source(folder: Path) -> LanceTable:
    return LanceTable(StorageLocation(str(folder)) / "source.lance", SOURCE)


def write(folder: Path, n_rows: int) -> None:
    table = source(folder)
    with build_writer_lock(table.place) as lock:
        writer = TableWriter(table, lock=lock, observe=lambda _step, _n: None)
        for start in range(0, n_rows, WRITTEN):
            writer.append([row(n) for n in range(start, min(n_rows, start + WRITTEN))])


def row(number: int) -> Row:
    place = f"s3://bucket/clips/{number:09d}.mp4"
    return {"key": digest("piece", str(number)), "attempt": 1, "facts": FACTS, "location": place}


def follow(folder: Path, way: str) -> dict[str, float]:
    command = [sys.executable, __file__, "--folder", str(folder), "--way", way]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    told: dict[str, float] = json.loads(done.stdout)
    return told


def decide(folder: Path, way: str) -> dict[str, float]:
    table, answers = (
        source(folder),
        LanceTable(StorageLocation(str(folder)) / "answers.lance", ANSWERS),
    )
    began_s = time.monotonic()
    questions = TableQuestionSource(table, dict) if way == "addresses" else table.rows()
    n_due = n_bytes = 0
    for due in PendingQuestionFilter(answers, ()).iter_due(questions):
        n_due += 1
        n_bytes += len(pickle.dumps(due))
    return {
        "due": n_due,
        "seconds": time.monotonic() - began_s,
        "cpu_s": time.process_time(),
        "bytes_a_row": n_bytes / max(1, n_due),
        "peak_mib": peak_mib(),
    }


if __name__ == "__main__":
    main()
