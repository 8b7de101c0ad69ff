"""The printed tables, cell by cell, as the papers give them."""

import csv
import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from importlib.resources import files
from typing import Any, Final

from unreel.core.errors import UnknownNameError

DEEPTRACE: Final = "DeepTraceReward (arXiv 2509.22646)"
VIDEOREAL: Final = "VideoRealBench (CVPR 2026)"
REALITY: Final = "Video Reality Test (arXiv 2512.13281)"


@dataclass(frozen=True, slots=True)
class TableSource:
    """Location of a table in its paper."""

    paper: str
    table: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedTable:
    """One table: its place in print and its rows, each cell as the text that was printed."""

    name: str
    source: TableSource
    columns: tuple[str, ...]
    rows: tuple[Mapping[str, str], ...]


SOURCES: Final[Mapping[str, TableSource]] = {
    "deeptrace_test": TableSource(DEEPTRACE, "table 2, test split"),
    "deeptrace_val": TableSource(DEEPTRACE, "table 5, val split"),
    "deeptrace_sources": TableSource(DEEPTRACE, "table 1"),
    "deeptrace_splits": TableSource(DEEPTRACE, "table 3"),
    "videoreal_evaluators": TableSource(VIDEOREAL, "main results"),
    "videoreal_ablations": TableSource(VIDEOREAL, "ablations"),
    "reality_reviewers": TableSource(REALITY, "table 2"),
    "reality_creators": TableSource(REALITY, "table 3"),
    "reality_think": TableSource(REALITY, "table 4"),
    "reality_preference": TableSource(REALITY, "table 5"),
    "reality_counts": TableSource(REALITY, "tables 6 to 15"),
    "reality_human": TableSource(REALITY, "table 16"),
}


def show(name: str) -> PublishedTable:
    """The table called `name`, as printed; an unknown name lists the known ones."""
    if name not in SOURCES:
        kind = "published table"
        raise UnknownNameError(kind, name, sorted(SOURCES))
    with _data(f"{name}.csv").open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        rows = tuple(dict(row) for row in reader)
        columns = tuple(reader.fieldnames or ())
    return PublishedTable(name=name, source=SOURCES[name], columns=columns, rows=rows)


def goldens() -> dict[str, Any]:
    """The integer counts behind the printed cells, as `goldens.json` holds them."""
    found: dict[str, Any] = json.loads(_data("goldens.json").read_text(encoding="utf-8"))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceRow:
    """One model's line in DeepTraceReward's tables 2 and 5: percentages as printed."""

    model: str
    overall: Decimal
    accuracy: Decimal
    fake_accuracy: Decimal
    real_accuracy: Decimal
    explanation: Decimal
    bbox_iou: Decimal
    bbox_distance: Decimal
    time_distance: Decimal


def trace_rows(split: str) -> tuple[TraceRow, ...]:
    """The lines of `split`, `test` or `val`, in printed order."""
    return tuple(
        TraceRow(model=row["model"], **{key: Decimal(row[key]) for key in row if key != "model"})
        for row in show(f"deeptrace_{split}").rows
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedLine:
    """One line of Video Reality Test's tables 2 and 3: its cells, their average and its rank."""

    name: str
    cells: Mapping[str, Decimal]
    average: Decimal
    rank: int

    @property
    def base(self) -> str:
        """Name of the line without sound, of which a `+ audio` line is a variant."""
        return base_of(self.name)


def base_of(line: str) -> str:
    """Name of the line without sound, of which a `+ audio` line is a variant; else the line's own."""
    name, plus, addition = line.rpartition(" + ")
    return name if plus and addition.lower() == "audio" else line


def reviewer_lines() -> tuple[PrintedLine, ...]:
    """Table 2: a line for each reviewer, a cell for each creator."""
    return tuple(_line(row, name=row["reviewer"]) for row in show("reality_reviewers").rows)


def creator_lines() -> tuple[PrintedLine, ...]:
    """Table 3: a line for each creator and setting, a cell for each reviewer."""
    return tuple(
        _line(row, name=f"{row['creator']} {row['setting']}")
        for row in show("reality_creators").rows
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedHumanRow:
    """People's guesses about one creator in table 16, and the score printed for them."""

    creator: str
    n_real: int
    real_correct: int
    n_fake: int
    fake_correct: int
    score: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRow:
    """One creator's line in DeepTraceReward's table 1: its rows, and how many percent are explained."""

    source: str
    annotations: int
    explained: Decimal


def source_rows() -> tuple[SourceRow, ...]:
    """Table 1, a line for each creator; real clips have no explanations."""
    return tuple(
        SourceRow(
            source=row["source"],
            annotations=int(row["annotations"]),
            explained=Decimal(row["explained_percent"]),
        )
        for row in show("deeptrace_sources").rows
        if row["explained_percent"]
    )


def human_rows() -> tuple[PrintedHumanRow, ...]:
    """Table 16, a line for each creator."""
    return tuple(
        PrintedHumanRow(
            creator=row["creator"],
            n_real=int(row["real_total"]),
            real_correct=int(row["real_predicted_real"]),
            n_fake=int(row["fake_total"]),
            fake_correct=int(row["fake_predicted_fake"]),
            score=Decimal(row["score"]),
        )
        for row in show("reality_human").rows
    )


_NOT_CELLS: Final = {"reviewer", "creator", "setting", "image", "text", "average", "rank"}


def _line(row: Mapping[str, str], *, name: str) -> PrintedLine:
    return PrintedLine(
        name=name,
        cells={key: Decimal(row[key]) for key in row if key not in _NOT_CELLS},
        average=Decimal(row["average"]),
        rank=int(row["rank"]),
    )


def _data(name: str) -> Any:
    return files("unreel.benchmarks.published") / "data" / name
