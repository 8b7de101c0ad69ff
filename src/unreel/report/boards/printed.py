"""The papers' rows beside measured ones: printed figures, on the papers' own clips."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from unreel.benchmarks.published.tables import PublishedTable, show

_TRACE: Final = {
    "overall": "overall",
    "accuracy": "accuracy",
    "fake-accuracy": "fake_accuracy",
    "real-accuracy": "real_accuracy",
    "explanation": "explanation",
    "box-iou": "bbox_iou",
    "box-distance": "bbox_distance",
    "time-distance": "time_distance",
}
_TABLES: Final[Mapping[str, tuple[str, str, Mapping[str, str], float]]] = {
    "trace": ("deeptrace_test", "model", _TRACE, 1),
    # The averages of table 2 are pooled accuracies, for people balanced ones.
    "reality": ("reality_reviewers", "reviewer", {"pooled": "average"}, 1),
    # Printed in percent; ours run to 1 as correlations do.
    "realism": (
        "videoreal_evaluators",
        "evaluator",
        {"plcc": "plcc", "srocc": "srocc", "sts": "sts"},
        0.01,
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedRow:
    """One model's line in a paper: figures by our names, those that are printed."""

    model: str
    figures: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedBoard:
    """A paper's leaderboard."""

    source: str
    rows: tuple[PrintedRow, ...]


def printed_board(protocol: str) -> PrintedBoard | None:
    """Return the published board of that protocol; `None` if no table has one figure per reviewer."""
    if protocol not in _TABLES:
        return None
    name, column, figures, factor = _TABLES[protocol]
    table: PublishedTable = show(name)
    rows = tuple(
        PrintedRow(
            model=row[column],
            figures={
                ours: float(row[theirs]) * factor for ours, theirs in figures.items() if row[theirs]
            },
        )
        for row in table.rows
    )
    return PrintedBoard(source=f"{table.source.paper}, {table.source.table}", rows=rows)
