"""Reader of the printed tables of the papers, which are stored cell by cell."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files

from unreel.core.errors import UnknownNameError

DEEPTRACE = "DeepTraceReward (arXiv 2509.22646)"
VIDEOREAL = "VideoRealBench (CVPR 2026)"
REALITY = "Video Reality Test (arXiv 2512.13281)"


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedTable:
    """One printed table: its columns and rows, each cell as the printed text."""

    name: str
    paper: str
    table: str
    """Number of the table in the paper."""
    columns: tuple[str, ...]
    rows: tuple[Mapping[str, str], ...]


SOURCES: Mapping[str, tuple[str, str]] = {
    "deeptrace_test": (DEEPTRACE, "table 2, test split"),
    "deeptrace_val": (DEEPTRACE, "table 5, val split"),
    "deeptrace_sources": (DEEPTRACE, "table 1"),
    "deeptrace_splits": (DEEPTRACE, "table 3"),
    "videoreal_evaluators": (VIDEOREAL, "main results"),
    "videoreal_ablations": (VIDEOREAL, "ablations"),
    "reality_reviewers": (REALITY, "table 2"),
    "reality_creators": (REALITY, "table 3"),
    "reality_think": (REALITY, "table 4"),
    "reality_preference": (REALITY, "table 5"),
    "reality_counts": (REALITY, "tables 6 to 15"),
    "reality_human": (REALITY, "table 16"),
}
"""Paper, and number of the table in the paper, of each printed table."""


def read_published_table(name: str) -> PublishedTable:
    """Return the printed table `name`; raise `UnknownNameError`, with all names, if unknown."""
    if name not in SOURCES:
        raise UnknownNameError("published table", name, sorted(SOURCES))
    path = files("unreel.benchmarks.published") / "data" / f"{name}.csv"
    reader = csv.DictReader(path.read_text(encoding="utf-8").splitlines())
    rows = tuple(dict(row) for row in reader)
    columns = tuple(reader.fieldnames or ())
    paper, table = SOURCES[name]
    return PublishedTable(name=name, paper=paper, table=table, columns=columns, rows=rows)
