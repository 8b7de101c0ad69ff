"""Reader of the printed tables of the papers, which are stored cell by cell."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files

from unreel.core.errors import UnknownNameError

DEEPTRACE = "DeepTraceReward (arXiv 2509.22646)"
VIDEOREAL = "VideoRealBench (CVPR 2026)"
REALITY = "Video Reality Test (arXiv 2512.13281)"


@dataclass(frozen=True, slots=True)
class PublishedTableSource:
    """Paper and table number of a printed table."""

    paper: str
    table: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedTable:
    """One printed table: source, columns and rows, each cell as the printed text."""

    name: str
    source: PublishedTableSource
    columns: tuple[str, ...]
    rows: tuple[Mapping[str, str], ...]


SOURCES: Mapping[str, PublishedTableSource] = {
    "deeptrace_test": PublishedTableSource(DEEPTRACE, "table 2, test split"),
    "deeptrace_val": PublishedTableSource(DEEPTRACE, "table 5, val split"),
    "deeptrace_sources": PublishedTableSource(DEEPTRACE, "table 1"),
    "deeptrace_splits": PublishedTableSource(DEEPTRACE, "table 3"),
    "videoreal_evaluators": PublishedTableSource(VIDEOREAL, "main results"),
    "videoreal_ablations": PublishedTableSource(VIDEOREAL, "ablations"),
    "reality_reviewers": PublishedTableSource(REALITY, "table 2"),
    "reality_creators": PublishedTableSource(REALITY, "table 3"),
    "reality_think": PublishedTableSource(REALITY, "table 4"),
    "reality_preference": PublishedTableSource(REALITY, "table 5"),
    "reality_counts": PublishedTableSource(REALITY, "tables 6 to 15"),
    "reality_human": PublishedTableSource(REALITY, "table 16"),
}


def read_published_table(name: str) -> PublishedTable:
    """Return the printed table `name`; raise `UnknownNameError`, with all names, if unknown."""
    if name not in SOURCES:
        raise UnknownNameError("published table", name, sorted(SOURCES))
    path = files("unreel.benchmarks.published") / "data" / f"{name}.csv"
    reader = csv.DictReader(path.read_text(encoding="utf-8").splitlines())
    rows = tuple(dict(row) for row in reader)
    columns = tuple(reader.fieldnames or ())
    return PublishedTable(name=name, source=SOURCES[name], columns=columns, rows=rows)
