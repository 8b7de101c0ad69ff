"""Reader of the printed tables of the papers, which are stored cell by cell."""

import csv
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from importlib.resources import files
from typing import Any, Final

from unreel.core.errors import UnknownNameError

DEEPTRACE: Final = "DeepTraceReward (arXiv 2509.22646)"
VIDEOREAL: Final = "VideoRealBench (CVPR 2026)"
REALITY: Final = "Video Reality Test (arXiv 2512.13281)"


@dataclass(frozen=True, slots=True)
class PublishedTableSource:
    """Paper and table number of a printed table."""

    paper: str
    table: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedTable:
    """One printed table: its source, columns and rows, each cell as the printed text."""

    name: str
    source: PublishedTableSource
    columns: tuple[str, ...]
    rows: tuple[Mapping[str, str], ...]


SOURCES: Final[Mapping[str, PublishedTableSource]] = {
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
        kind = "published table"
        raise UnknownNameError(kind, name, sorted(SOURCES))
    with _get_data_file(f"{name}.csv").open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        rows = tuple(dict(row) for row in reader)
        columns = tuple(reader.fieldnames or ())
    return PublishedTable(name=name, source=SOURCES[name], columns=columns, rows=rows)


def read_printed_cell_counts() -> dict[str, Any]:
    """Return the integer counts behind the printed cells, from `goldens.json`."""
    counts: dict[str, Any] = json.loads(_get_data_file("goldens.json").read_text(encoding="utf-8"))
    return counts


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedDeepTraceRow:
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


def read_printed_deeptrace_rows(split: str) -> tuple[PrintedDeepTraceRow, ...]:
    """Return the rows of DeepTraceReward's table for `split` (`test` or `val`), in printed order."""
    return tuple(
        PrintedDeepTraceRow(
            model=row["model"], **{key: Decimal(row[key]) for key in row if key != "model"}
        )
        for row in read_published_table(f"deeptrace_{split}").rows
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedTableLine:
    """One line of Video Reality Test's tables 2 and 3: its cells, their average and its rank."""

    name: str
    cells: Mapping[str, Decimal]
    average: Decimal
    rank: int

    @property
    def base(self) -> str:
        """Return the name of the row without audio, of which a `+ audio` row is a variant."""
        return get_line_name_without_audio(self.name)


def get_line_name_without_audio(line: str) -> str:
    """Return the name of a row without a final ` + audio`."""
    name, plus, addition = line.rpartition(" + ")
    return name if plus and addition.lower() == "audio" else line


def read_printed_reviewer_lines() -> tuple[PrintedTableLine, ...]:
    """Return the rows of Video Reality Test's table 2: one per reviewer, one cell per creator."""
    return tuple(
        _parse_printed_line(row, name=row["reviewer"])
        for row in read_published_table("reality_reviewers").rows
    )


def read_printed_creator_lines() -> tuple[PrintedTableLine, ...]:
    """Return the lines of table 3: one line per creator and setting, one cell per reviewer."""
    return tuple(
        _parse_printed_line(row, name=f"{row['creator']} {row['setting']}")
        for row in read_published_table("reality_creators").rows
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedHumanAnswerCounts:
    """Counts of people's answers about one creator in table 16, and the printed score."""

    creator: str
    n_real: int
    real_correct: int
    n_fake: int
    fake_correct: int
    score: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedExplanationRate:
    """A creator's line in DeepTraceReward's table 1: number of rows, and percentage with explanation."""

    source: str
    annotations: int
    explained: Decimal


def read_printed_explanation_rates() -> tuple[PrintedExplanationRate, ...]:
    """Return the lines of table 1, one per creator; real clips are omitted: they have no explanations."""
    return tuple(
        PrintedExplanationRate(
            source=row["source"],
            annotations=int(row["annotations"]),
            explained=Decimal(row["explained_percent"]),
        )
        for row in read_published_table("deeptrace_sources").rows
        if row["explained_percent"]
    )


def read_printed_human_answer_counts() -> tuple[PrintedHumanAnswerCounts, ...]:
    """Return the rows of Video Reality Test's table 16, one per creator."""
    return tuple(
        PrintedHumanAnswerCounts(
            creator=row["creator"],
            n_real=int(row["real_total"]),
            real_correct=int(row["real_predicted_real"]),
            n_fake=int(row["fake_total"]),
            fake_correct=int(row["fake_predicted_fake"]),
            score=Decimal(row["score"]),
        )
        for row in read_published_table("reality_human").rows
    )


_NOT_CELLS: Final = {"reviewer", "creator", "setting", "image", "text", "average", "rank"}


def _parse_printed_line(row: Mapping[str, str], *, name: str) -> PrintedTableLine:
    return PrintedTableLine(
        name=name,
        cells={key: Decimal(row[key]) for key in row if key not in _NOT_CELLS},
        average=Decimal(row["average"]),
        rank=int(row["rank"]),
    )


def _get_data_file(name: str) -> Any:
    return files("unreel.benchmarks.published") / "data" / name


REAL: Final = "Real"

COUNT_TABLES: Final[Mapping[str, int]] = {
    "Qwen3-VL-8B": 6,
    "Qwen3-VL-235B-A22B": 7,
    "Qwen2.5-VL-72B": 8,
    "GPT-5": 9,
    "Qwen3-VL-30B-A3B": 10,
    "GLM-4.5V": 11,
    "Gemini-2.5-Pro": 12,
    "Gemini-2.5-Flash": 13,
    "GPT-4o": 14,
    "GPT-4o-mini": 15,
}
"""Number of the table with the answer counts of each reviewer of table 2."""

COLUMNS: Final[Mapping[str, str]] = {
    "Veo3.1-Fast": "Veo-3.1-fast ImgText2Vid",
    "Sora2": "Sora2 ImgText2Vid",
    "Wan2.2-A14B": "Wan2.2 ImgText2Vid-A14B",
    "Wan2.2-5B": "Wan2.2 ImgText2Vid-5B",
    "OpenSora-V2": "OpenSora-V2 ImgText2Vid",
    "HunyuanVideo": "HunyuanVideo ImgText2Vid",
    "StepVideo": "StepVideo Text2Vid",
}
"""Line of table 3 for the creator in each column of table 2."""

# The count tables write one source in up to four ways: the name, then a setting or nothing.
_LINES: Final[Mapping[tuple[str, str], str]] = {
    ("veo3.1-fast", ""): "Veo-3.1-fast ImgText2Vid",
    ("sora2", ""): "Sora2 ImgText2Vid",
    ("sora2", "it2v"): "Sora2 ImgText2Vid",
    ("sora2", "t2v"): "Sora2 Text2Vid",
    ("hunyuan", ""): "HunyuanVideo ImgText2Vid",
    ("hunyuan", "it2v"): "HunyuanVideo ImgText2Vid",
    ("hunyuan", "t2v"): "HunyuanVideo Text2Vid",
    ("opensora", "i2v"): "OpenSora-V2 ImgText2Vid",
    ("opensora", "t2v"): "OpenSora-V2 Text2Vid",
    ("opensora", "t2i2v"): "OpenSora-V2 Text2Img2Vid",
    ("wan", "it2v"): "Wan2.2 ImgText2Vid-5B",
    ("wan", "i2v"): "Wan2.2 ImgText2Vid-A14B",
    ("wan", "t2v"): "Wan2.2 Text2Vid-A14B",
    ("stepvideo", "t2v"): "StepVideo Text2Vid",
    ("real", ""): REAL,
    ("real", "videos"): REAL,
}


@dataclass(frozen=True, slots=True)
class RealAndGeneratedAnswerCounts:
    """Number of valid answers about the clips of one source, and number of them that say generated."""

    valid: int
    said_fake: int

    @property
    def said_real(self) -> int:
        """Return the number of valid answers that say real."""
        return self.valid - self.said_fake

    def __str__(self) -> str:
        return f"{self.said_fake} of {self.valid}"


def round_to_two_places(percent: Fraction | float) -> Decimal:
    """Round `percent` half up to two decimal places in one step, as Video Reality Test prints it."""
    exact = percent if isinstance(percent, Fraction) else Fraction(str(percent))
    quotient = Decimal(exact.numerator) / Decimal(exact.denominator)
    return quotient.quantize(Decimal("0.01"), ROUND_HALF_UP)


CountTables = Mapping[int, Mapping[str, RealAndGeneratedAnswerCounts]]


def read_printed_count_tables() -> CountTables:
    """Return the counts of tables 6 to 15 by table and source: `Real`, or a row of table 3."""
    tables: dict[int, dict[str, RealAndGeneratedAnswerCounts]] = {}
    for row in read_published_table("reality_counts").rows:
        name, *setting = re.findall(r"[\w.-]+", row["source"].lower())
        line = _LINES[name, "".join(setting)]
        count = RealAndGeneratedAnswerCounts(
            valid=int(row["valid"]), said_fake=int(row["predicted_fake"])
        )
        tables.setdefault(int(row["table"]), {})[line] = count
    return tables
