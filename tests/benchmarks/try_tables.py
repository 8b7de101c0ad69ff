"""Reads a table in a process of its own and tells how that ended, and what it took."""

import json
import sys
import time
from pathlib import Path

from census import take_census

from unreel.benchmarks.loader import open_benchmark
from unreel.core.errors import UnreelError


def attempt(path: Path) -> str:
    """How reading the table at `path` ends."""
    try:
        census = take_census(open_benchmark(path))
    except UnreelError as error:
        return f"refused: {error}"
    return f"read: {census.n_entries} entries, {census.n_rejected} rejected"


def peak_kb() -> int:
    """The most memory that this program took; getrusage counts what the process was before it."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.partition("VmHWM:")[2].split()[0])


def main() -> None:
    """One line of JSON for each table that was named."""
    for name in sys.argv[1:]:
        began_s = time.monotonic()
        told = {"ended": attempt(Path(name))}
        seconds = time.monotonic() - began_s
        mb = peak_kb() >> 10
        sys.stdout.write(json.dumps(told | {"seconds": seconds, "mb": mb}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
