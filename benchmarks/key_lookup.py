"""Two ways to find rows by their keys: sorted marks in memory, and Lance's scalar index on disk.

    python benchmarks/key_lookup.py --rows 100000
    python benchmarks/key_lookup.py --rows 1000000 --json

Makes a table of random keys and measures for both: what it takes to build, to look up 1,024 and 65,536 keys in
any order, to follow 10,000 rows that are appended, and how many bytes that keeps in memory or on disk.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
from peak_memory import peak_mib

from unreel.engine.key_index import KeyIndex

LOOKS = (1_024, 65_536)
APPENDED = 10_000
AT_ONCE = 100_000


def write(folder: str, n: int, rng: np.random.Generator) -> Any:
    """Append `n` rows with random keys."""
    for start in range(0, n, AT_ONCE):
        rows = min(AT_ONCE, n - start)
        drawn = rng.bytes(32 * rows).hex()
        keys = [drawn[at : at + 64] for at in range(0, len(drawn), 64)]
        lance.write_dataset(
            pa.table({"key": keys, "text": ["real " * 60] * rows}), folder, mode="append"
        )
    return lance.dataset(folder)


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of work of all threads, and what came of it."""
    began = time.process_time()
    made = work()
    return round(time.process_time() - began, 4), made


def disk_bytes(folder: str) -> int:
    """Of all files."""
    return sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())


def measure_marks(folder: str, looks: list[list[str]], more: Callable[[], Any]) -> dict[str, Any]:
    """Sorted marks; a row that is found is fetched with its key, as a table does."""
    dataset = lance.dataset(folder)
    build_s, index = timed(lambda: KeyIndex().follow(dataset))
    told: dict[str, Any] = {"build_s": build_s}
    for keys in looks:
        told[f"find_{len(keys)}_s"], slots = timed(lambda keys=keys: index.candidates(keys))
        if len(slots) != len(keys):
            sys.exit(f"{len(slots)} rows for {len(keys)} keys")
        told[f"fetch_{len(keys)}_s"], _ = timed(
            lambda s=slots: list(index.take(dataset, s, ["key"]))
        )
    longer = more()
    told["follow_s"], index = timed(lambda: index.follow(longer))
    told["bytes_per_row"] = round(
        (index.short_hashes.short_hashes.nbytes + index.short_hashes.slots.nbytes)
        / longer.count_rows(),
        1,
    )
    return told


def measure_scalar(folder: str, looks: list[list[str]], more: Callable[[], Any]) -> dict[str, Any]:
    """Lance's BTREE on the column of keys."""
    dataset, before = lance.dataset(folder), disk_bytes(folder)
    build_s, _ = timed(lambda: dataset.create_scalar_index("key", "BTREE"))
    built = disk_bytes(folder)
    told: dict[str, Any] = {"build_s": build_s}
    for keys in looks:
        where = "key IN (" + ",".join(f"'{key}'" for key in keys) + ")"
        scan = lance.dataset(folder).scanner(columns=["key"], filter=where)
        told[f"fetch_{len(keys)}_s"], found = timed(scan.to_table)
        if len(found) != len(keys):
            sys.exit(f"{len(found)} rows for {len(keys)} keys")
    longer = more()
    at_first = disk_bytes(folder)
    told["follow_s"], _ = timed(longer.optimize.optimize_indices)
    told["follow_bytes"] = disk_bytes(folder) - at_first
    told["bytes_per_row"] = round((built - before) / dataset.count_rows(), 1)
    return told


def measure(n: int, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory(prefix="unreel-") as folder:
        keys = write(folder, n, rng).to_table(columns=["key"])["key"]
        looks = [
            keys.take(rng.choice(n, look, replace=False)).to_pylist() for look in LOOKS if look <= n
        ]
        del keys

        def more() -> Any:
            return write(folder, APPENDED, rng)

        told = {"rows": n, "marks": measure_marks(folder, looks, more)}
        told["scalar index"] = measure_scalar(folder, looks, more)
    told["peak_mib"] = peak_mib()
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    told = measure(asked.rows, asked.seed)
    if asked.json:
        print(json.dumps(told))
        return
    print(f"{told['rows']:,} rows, at most {told['peak_mib']:,} MiB; seconds of work")
    for way in ("marks", "scalar index"):
        print(f"{way:13}", "  ".join(f"{name} {value:,}" for name, value in told[way].items()))


if __name__ == "__main__":
    main()
