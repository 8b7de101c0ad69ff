"""What it costs to store rows: seconds, memory, and what is written besides the rows themselves.

    python benchmarks/commit_cost.py --rows 100000
    python benchmarks/commit_cost.py --rows 1000000 --through run --json

`--through offer` gives rows to the committer as fast as it takes them; `--through run` is a whole run of a
stage that does nothing. `--commit-rows` fixes the size of commits, which follow the rate otherwise.
"""

import argparse
import json
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
from peak_memory import peak_mib

from unreel.asking.answer_table import ANSWERS
from unreel.core.content_ids import digest
from unreel.engine.committer import CommitPace, TableCommitter
from unreel.engine.location import StorageLocation
from unreel.engine.run import run_pending_questions
from unreel.engine.stage import Row, Stage, WorkerResources
from unreel.engine.table import LanceTable

_CHANCE = random.Random(1)
_WORDS = [digest("word", str(number))[: 3 + number % 7] for number in range(500)]
TEXTS = [" ".join(_CHANCE.choices(_WORDS, k=43)) for _ in range(4_093)]
"""About 300 characters each; alike where languages are, in their words."""


class Idle(Stage):
    """Answers at once."""

    resources = WorkerResources(cpus=0, in_flight=64)

    async def __call__(self, row: Row) -> Row:
        return _answered(row)


class Watch:
    """The sizes of commits, and how long fragments were joined."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.joined_s: list[float] = []
        self._last_s = time.monotonic()

    def step(self, step: str, n_rows: int) -> None:
        now_s = time.monotonic()
        if step == "compacted":
            self.joined_s.append(now_s - self._last_s)
        if step == "committed":
            self.sizes.append(n_rows)
        if step != "rewritten":
            self._last_s = now_s


def main() -> None:
    asked = _arguments()
    with tempfile.TemporaryDirectory() as scratch:
        folder = asked.folder or Path(scratch)
        told = measure(folder / "answers.lance", asked)
    if asked.json:
        print(json.dumps(told))
        return
    for name, value in told.items():
        print(f"{name:<28}{value:>16,}")


def _arguments() -> Any:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--through", choices=["offer", "run"], default="offer")
    parser.add_argument("--commit-rows", type=int, help="rows of each commit")
    parser.add_argument("--folder", type=Path, help="where the table goes, and stays")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def measure(place: Path, asked: Any) -> dict[str, float]:
    """Store the rows, and look at what lies there then."""
    table, watch = LanceTable(StorageLocation(str(place)), ANSWERS), Watch()
    pace = CommitPace(rows=asked.commit_rows)
    began_s, began_cpu_s = time.monotonic(), time.process_time()
    if asked.through == "run":
        run_pending_questions(
            _questions(asked.rows), [Idle()], table=table, pace=pace, observe=watch.step
        )
    else:
        with TableCommitter(table, pace=pace, on_commit=lambda _: None, observe=watch.step) as sink:
            for row in _questions(asked.rows):
                sink.add(_answered(row))
    wall_s, cpu_s = time.monotonic() - began_s, time.process_time() - began_cpu_s
    return {
        "rows": asked.rows,
        "wall_s": round(wall_s, 2),
        "cpu_s": round(cpu_s, 2),
        "rows_per_s": round(asked.rows / wall_s),
        "cpu_us_per_row": round(1e6 * cpu_s / asked.rows, 1),
        "commits": len(watch.sizes),
        "largest_commit": max(watch.sizes),
        "joins": len(watch.joined_s),
        "longest_join_s": round(max(watch.joined_s, default=0.0), 2),
        "peak_mib": peak_mib(),
        **_look_at(place, asked.rows),
    }


def _questions(n_rows: int) -> Iterator[Row]:
    for number in range(n_rows):
        yield {"key": digest(str(number)), "clip": digest("clip", str(number))}


def _answered(row: Row) -> Row:
    return row | {"text": TEXTS[int(row["key"][:6], 16) % len(TEXTS)], "latency_us": 700_000}


def _look_at(place: Path, n_rows: int) -> dict[str, float]:
    """Nothing is let go within an hour, so all that was ever written lies there."""
    dataset = lance.dataset(str(place))
    assert dataset.count_rows() == n_rows
    fragments = dataset.get_fragments()
    live = sum(file.file_size_bytes or 0 for one in fragments for file in one.metadata.files)
    return {
        "fragments": len(fragments),
        "versions": len(list((place / "_versions").glob("*.manifest"))),
        "manifest_bytes_per_row": round(_bytes_in(place / "_versions") / n_rows, 2),
        "transaction_bytes_per_row": round(_bytes_in(place / "_transactions") / n_rows, 2),
        "data_bytes_per_row": round(live / n_rows, 1),
        "written_per_byte_kept": round(_bytes_in(place / "data") / live, 2),
    }


def _bytes_in(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir())


if __name__ == "__main__":
    main()
