"""Recompute the published figures of the three papers from their printed counts.

    python studies/published/recompute.py

Writes docs/errata.md: each check with the number of figures that reproduce, and a cause for each one
that does not. DTR is DeepTraceReward, VRT is Video Reality Test, VRB is VideoRealBench.
"""

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from enum import Enum
from fractions import Fraction
from functools import partial
from math import comb
from pathlib import Path

from unreel.benchmarks.published.printed_tables import read_published_table
from unreel.protocols.paper_formulas import (
    PERCENT,
    compute_balanced_accuracy,
    compute_pooled_accuracy,
    compute_trace_overall_score,
    round_as_printed,
)

PAGE = Path(__file__).parents[2] / "docs" / "errata.md"
HEAD = """# Errata of the printed tables

`python studies/published/recompute.py` recomputes the figures of the three papers from their printed counts, and writes this page. DTR is
DeepTraceReward, VRT is Video Reality Test, VRB is VideoRealBench. A cause is our reading of the arithmetic; the authors have not confirmed it.

| figures | reproduced | formula |
|---|---|---|"""


class Cause(Enum):
    """Cause of a printed number that does not follow from its inputs; the value is a sentence."""

    REPEATED_ROW = "The row repeats the row of another split."
    REPEATED_TABLE = "The count table repeats the counts of another reviewer."
    ROTATED_COUNTS = "The Veo rows of tables 12 to 15 are each printed one table too early."
    SWAPPED_TOTALS = "The totals of two settings of the creator are swapped."
    COUNT_SLIP = "Likely one count or total differs from the one that was used."
    HALF_POINT_OFF = "Print and calculation differ by exactly 0.50: likely a wrong digit."
    EXCHANGED_RANKS = "The ranks of two neighbours are swapped."
    WRONG_AVERAGE = "The rank follows from an average that is itself wrong."
    ERROR_OF_PRINT = "No count near these and no slip of one digit gives it: an error of print."
    IMPOSSIBLE_SHARE = "No whole count gives the printed share."
    TEXT_AGAINST_TABLE = "The text gives another count than the table."
    UNEXPLAINED = "No cause is known."


Explanation = tuple[Cause, str]
"""A cause, and the evidence: tested explanations and their results."""


@dataclass(frozen=True, slots=True)
class Misprint:
    """A printed number that the recalculation does not give, with the calculation and the cause."""

    cell: str
    formula: str
    calculated: Decimal | None
    """Recalculated number; `None` if no count can give the printed number."""
    printed: Decimal
    cause: Cause
    because: str

    def __str__(self) -> str:
        calculated = "nothing" if self.calculated is None else self.calculated
        head = f"{self.cell}: {self.formula} = {calculated}, printed {self.printed}"
        return f"{head}. {self.cause.value} {self.because}."


@dataclass(frozen=True, slots=True)
class FigureCheck:
    """Recalculation of one group of printed numbers, with the misprints."""

    name: str
    formula: str
    total: int
    misprints: Sequence[Misprint]

    @property
    def reproduced(self) -> int:
        return self.total - len(self.misprints)


Figure = tuple[str, str, Decimal | None, Decimal, Callable[[], Explanation]]
"""Cell, formula, recalculated and printed number, and a function that explains a difference."""


def compare(name: str, formula: str, figures: Iterable[Figure]) -> FigureCheck:
    """Compare recalculated with printed figures."""
    total, misprints = 0, []
    for cell, own_formula, calculated, printed, explain in figures:
        total += 1
        if calculated != printed:
            misprints.append(Misprint(cell, own_formula, calculated, printed, *explain()))
    return FigureCheck(name, formula, total, misprints)


# DeepTraceReward

SPLITS = ("test", "val")
N_REAL = 332
N_FAKE = {"test": 440, "val": 434}
"""Number of annotation rows with a generated clip in each split; the paper scores rows."""
ACCURACIES = ("accuracy", "fake_accuracy", "real_accuracy")


def iter_deeptrace_overall() -> Iterator[Figure]:
    """Yield DeepTraceReward's overall scores, from their four printed components, within 0.05."""
    for split in SPLITS:
        for row in read_published_table(f"deeptrace_{split}").rows:
            overall = compute_trace_overall_score(
                accuracy=float(row["accuracy"]),
                explanation=float(row["explanation"]),
                box_iou=float(row["bbox_iou"]),
                time_distance=float(row["time_distance"]),
            )
            calculated = round_as_printed(overall, places=3)  # a quarter of tenths is exact
            printed = Decimal(row["overall"])
            off = abs(calculated - printed)
            parts = " + ".join(row[name] for name in ("accuracy", "explanation", "bbox_iou"))
            yield (
                f"{split}, {row['model']}",
                f"({parts} + (100 - {row['time_distance']})) / 4",
                calculated if off > Decimal("0.05") else printed,
                printed,
                lambda off=off: (Cause.UNEXPLAINED, f"It is {off} off"),
            )


def list_deeptrace_counts(split: str, row: Mapping[str, str]) -> list[tuple[int, int]]:
    """Return the numbers of right fake and real rows that give all printed accuracies of a row."""
    pooled, fake, real = (Decimal(row[name]) for name in ACCURACIES)
    n_fake = N_FAKE[split]
    counts = [
        [k for k in range(n + 1) if round_as_printed(Fraction(PERCENT * k, n)) == printed]
        for n, printed in ((n_fake, fake), (N_REAL, real))
    ]
    return [
        (fakes, reals)
        for fakes, reals in itertools.product(*counts)
        if round_as_printed(Fraction(PERCENT * (fakes + reals), n_fake + N_REAL)) == pooled
    ]


def iter_deeptrace_accuracies() -> Iterator[Figure]:
    """Yield the printed accuracies (all, fake, real) of each line, if integer counts give all three."""
    tables = {split: read_published_table(f"deeptrace_{split}").rows for split in SPLITS}

    def explain(split: str, row: Mapping[str, str]) -> Explanation:
        printed = [row[name] for name in ("model", *ACCURACIES)]
        for other in SPLITS:
            others = [[twin[name] for name in ("model", *ACCURACIES)] for twin in tables[other]]
            if other != split and printed in others:
                return Cause.REPEATED_ROW, (
                    f"No whole count of {N_FAKE[split]} prints a fake accuracy of "
                    f"{row['fake_accuracy']}, and the three accuracies are those of the {other} row"
                )
        return Cause.UNEXPLAINED, "No whole counts give the three accuracies"

    for split, rows in tables.items():
        for row in rows:
            printed = Decimal(row["accuracy"])
            yield (
                f"{split}, {row['model']}",
                f"100 x (? + ?)/({N_FAKE[split]} + {N_REAL})",
                printed if list_deeptrace_counts(split, row) else None,
                printed,
                partial(explain, split, row),
            )


def iter_deeptrace_explanation_rates() -> Iterator[Figure]:
    """Yield each creator's percentage with explanation, if an integer count of rows gives it."""
    for row in read_published_table("deeptrace_sources").rows:
        if not row["explained_percent"]:  # real clips
            continue
        n, printed = int(row["annotations"]), Decimal(row["explained_percent"])
        # Rounded in one step, unlike tables 2 and 5: only so is 69 of 102, 67.647, printed as 67.6.
        percents = [
            (Decimal(PERCENT * k) / n).quantize(Decimal("0.1"), ROUND_HALF_UP) for k in range(n + 1)
        ]
        below = int(printed * n / PERCENT)
        nearest = " and ".join(f"{k} gives {percents[k]}" for k in (below, min(n, below + 1)))
        because = f"Of {n} rows {nearest}"
        yield (
            f"{row['source']}, explained",
            f"100 x ?/{n}",
            printed if printed in percents else None,
            printed,
            lambda because=because: (Cause.IMPOSSIBLE_SHARE, because),
        )


# Video Reality Test

REAL = "Real"
VEO = "Veo-3.1-fast ImgText2Vid"
ROTATED = (12, 13, 14, 15)
COUNT_TABLES = {
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
COLUMNS = {
    "Veo3.1-Fast": VEO,
    "Sora2": "Sora2 ImgText2Vid",
    "Wan2.2-A14B": "Wan2.2 ImgText2Vid-A14B",
    "Wan2.2-5B": "Wan2.2 ImgText2Vid-5B",
    "OpenSora-V2": "OpenSora-V2 ImgText2Vid",
    "HunyuanVideo": "HunyuanVideo ImgText2Vid",
    "StepVideo": "StepVideo Text2Vid",
}
"""Line of table 3 for the creator in each column of table 2."""
# The count tables write one source in up to four ways: the name, then a setting or nothing.
_LINES = {
    ("veo3.1-fast", ""): VEO,
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
_NOT_CELLS = {"reviewer", "creator", "setting", "image", "text", "average", "rank"}


@dataclass(frozen=True, slots=True)
class AnswerCounts:
    """Number of valid answers about the clips of one source, and number of them that say generated."""

    valid: int
    said_fake: int

    @property
    def said_real(self) -> int:
        return self.valid - self.said_fake

    def __str__(self) -> str:
        return f"{self.said_fake} of {self.valid}"


CountTables = Mapping[int, Mapping[str, AnswerCounts]]


def read_count_tables() -> CountTables:
    """Return the counts of tables 6 to 15 by table and source: `Real`, or a line of table 3."""
    tables: dict[int, dict[str, AnswerCounts]] = {}
    for row in read_published_table("reality_counts").rows:
        name, *setting = re.findall(r"[\w.-]+", row["source"].lower())
        counts = AnswerCounts(int(row["valid"]), int(row["predicted_fake"]))
        tables.setdefault(int(row["table"]), {})[_LINES[name, "".join(setting)]] = counts
    return tables


@dataclass(frozen=True, slots=True)
class TableLine:
    """One line of Video Reality Test's tables 2 and 3: its cells, their average and its rank."""

    name: str
    cells: Mapping[str, Decimal]
    average: Decimal
    rank: int

    @property
    def base(self) -> str:
        """Return the name of the line without audio, of which a `+ audio` line is a variant."""
        name, plus, addition = self.name.rpartition(" + ")
        return name if plus and addition.lower() == "audio" else self.name

    @property
    def mean(self) -> Fraction:
        return sum(map(Fraction, self.cells.values()), Fraction()) / len(self.cells)


def read_table_lines(table: str) -> list[TableLine]:
    """Return the lines of `reality_reviewers` (table 2) or `reality_creators` (table 3)."""
    return [
        TableLine(
            row.get("reviewer") or f"{row['creator']} {row['setting']}",
            {key: Decimal(row[key]) for key in row if key not in _NOT_CELLS},
            Decimal(row["average"]),
            int(row["rank"]),
        )
        for row in read_published_table(table).rows
    ]


def round_to_two_places(percent: Fraction | float) -> Decimal:
    """Round `percent` half up to two decimal places in one step, as Video Reality Test prints it."""
    exact = percent if isinstance(percent, Fraction) else Fraction(str(percent))
    quotient = Decimal(exact.numerator) / Decimal(exact.denominator)
    return quotient.quantize(Decimal("0.01"), ROUND_HALF_UP)


@dataclass(frozen=True, slots=True)
class PrintedCell:
    """A printed percentage and the counts it should follow from."""

    line: str
    column: str
    printed: Decimal
    table: int
    """Number of the table with the counts."""
    creator: str
    """Line of table 3 whose clips were judged."""
    real: AnswerCounts | None
    """Counts of real clips; `None` in table 3, whose cells are about generated clips only."""
    fake: AnswerCounts

    @property
    def name(self) -> str:
        return f"{self.line}, {self.column}"

    @property
    def formula(self) -> str:
        if self.real is None:
            return f"100 x {self.fake.said_fake}/{self.fake.valid}"
        above = f"({self.real.said_real} + {self.fake.said_fake})"
        return f"100 x {above}/({self.real.valid} + {self.fake.valid})"

    def value(self, fake: AnswerCounts | None = None) -> Decimal:
        """Recalculate the cell from its own counts, or with `fake` instead of its generated counts."""
        counts = self.fake if fake is None else fake
        if self.real is None:
            return round_to_two_places(Fraction(PERCENT * counts.said_fake, counts.valid))
        pooled = compute_pooled_accuracy(
            real_correct=self.real.said_real,
            n_real=self.real.valid,
            fake_correct=counts.said_fake,
            n_fake=counts.valid,
        )
        return round_to_two_places(pooled)


def list_cells(table: str, tables: CountTables) -> list[PrintedCell]:
    """Return the cells of `reality_reviewers` or `reality_creators` that have counts, in printed order."""
    cells = []
    for line in read_table_lines(table):
        for column, printed in line.cells.items():
            is_pooled = table == "reality_reviewers"
            reviewer, creator = (line.name, COLUMNS[column]) if is_pooled else (column, line.name)
            number = COUNT_TABLES.get(reviewer, 0)
            counts = tables.get(number, {})
            if creator in counts:
                real, fake = counts[REAL] if is_pooled else None, counts[creator]
                cells.append(PrintedCell(line.name, column, printed, number, creator, real, fake))
    return cells


def iter_cells(cells: Iterable[PrintedCell], tables: CountTables) -> Iterator[Figure]:
    """Yield the printed cells that have counts in `tables`."""
    for cell in cells:
        explain = partial(explain_cell, cell, tables)
        yield cell.name, cell.formula, cell.value(), cell.printed, explain


def explain_cell(cell: PrintedCell, tables: CountTables) -> Explanation:
    """Return the first cause that explains the printed percentage of `cell`, and the evidence.

    A cause is accepted if the recalculation with it gives the printed number, or if the table repeats
    another table. Otherwise the size of the error is the evidence.
    """
    rows = tables[cell.table]
    for number, earlier in tables.items():
        same = sum(rows[source] == earlier.get(source) for source in rows)
        if number < cell.table and rows[REAL] == earlier[REAL] and same >= len(rows) - 1:
            because = (
                f"{same} of the {len(rows)} rows of table {cell.table}, the real one among them, are "
                f"those of table {number}; likely the printed line comes from counts not in print"
            )
            return Cause.REPEATED_TABLE, because
    if cell.creator == VEO and cell.table in ROTATED:
        before = ROTATED[ROTATED.index(cell.table) - 1]
        counts = tables[before][VEO]
        if cell.value(counts) == cell.printed:
            because = f"The row of table {before}, {counts}, gives the printed {cell.printed}"
            return Cause.ROTATED_COUNTS, because
    family = cell.creator.partition(" ")[0]
    for source, counts in rows.items():
        is_other_setting = source != cell.creator and source.partition(" ")[0] == family
        if is_other_setting and cell.fake.said_fake <= counts.valid:
            swapped = AnswerCounts(counts.valid, cell.fake.said_fake)
            if cell.value(swapped) == cell.printed:
                because = f"{swapped}, with the total of {source}, gives the printed {cell.printed}"
                return Cause.SWAPPED_TOTALS, because
    # Counts that differ by one or two answers, nearest first.
    steps = [
        (a, b) for a, b in itertools.product(range(-2, 3), repeat=2) if abs(a) + abs(b) in (1, 2)
    ]
    steps.sort(key=lambda step: abs(step[0]) + abs(step[1]))
    near = [AnswerCounts(cell.fake.valid + b, cell.fake.said_fake + a) for a, b in steps]
    near = [counts for counts in near if 0 <= counts.said_fake <= counts.valid]
    for counts in near:
        if cell.value(counts) == cell.printed:
            because = f"{counts} instead of {cell.fake} gives the printed {cell.printed}"
            return Cause.COUNT_SLIP, because
    nearest = min(near, key=lambda counts: abs(cell.value(counts) - cell.printed))
    cause, because = _explain_by_size(cell.printed, cell.value())
    return cause, f"{because}; the nearest counts, {nearest}, give {cell.value(nearest)}"


def _explain_by_size(printed: Decimal, calculated: Decimal) -> Explanation:
    if (distance := abs(printed - calculated)) == Decimal("0.50"):
        return Cause.HALF_POINT_OFF, f"{printed} against {calculated}"
    return Cause.ERROR_OF_PRINT, f"It is {distance} off"


def iter_averages(lines: Iterable[TableLine], cells: Sequence[PrintedCell]) -> Iterator[Figure]:
    """Yield the average of each line, from its printed cells; `cells` are the cells with counts."""

    def explain(line: TableLine) -> Explanation:
        for cell in cells:
            n_clips = cell.fake.valid + (cell.real.valid if cell.real else 0)
            for step, more in ((1, "more"), (-1, "less")):
                mean = line.mean + Fraction(step * PERCENT, n_clips * len(line.cells))
                if cell.line == line.name and round_to_two_places(mean) == line.average:
                    because = f"One answer {more} in one cell gives the printed {line.average}"
                    return Cause.COUNT_SLIP, because
        return _explain_by_size(line.average, round_to_two_places(line.mean))

    for line in lines:
        formula = f"({' + '.join(map(str, line.cells.values()))})/{len(line.cells)}"
        calculated = round_to_two_places(line.mean)
        yield f"{line.name}, average", formula, calculated, line.average, partial(explain, line)


def iter_ranks(lines: Sequence[TableLine], *, best_is_high: bool) -> Iterator[Figure]:
    """Yield printed ranks, by unrounded means; a `+ audio` line has the rank of the line without it."""

    def rank_by(values: Mapping[str, Fraction]) -> dict[str, int]:
        bases = [line.name for line in lines if line.base == line.name]
        order = sorted(bases, key=lambda base: values[base], reverse=best_is_high)
        return {line.name: order.index(line.base) + 1 for line in lines}

    ranks = rank_by({line.name: line.mean for line in lines})
    by_printed_average = rank_by({line.name: Fraction(line.average) for line in lines})

    def explain(line: TableLine) -> Explanation:
        if by_printed_average[line.name] == line.rank:
            return (Cause.WRONG_AVERAGE, f"The printed average {line.average} has rank {line.rank}")
        for other in lines:
            exchanged = other.rank == ranks[line.name] and ranks[other.name] == line.rank
            if other != line and exchanged:
                because = f"{other.name} has rank {other.rank}, {line.name} {line.rank}"
                return Cause.EXCHANGED_RANKS, because
        return Cause.UNEXPLAINED, f"No neighbour has rank {ranks[line.name]} instead"

    for line in lines:
        formula = f"place of the mean {round_to_two_places(line.mean)}"
        rank, printed = Decimal(ranks[line.name]), Decimal(line.rank)
        yield f"{line.name}, rank", formula, rank, printed, partial(explain, line)


def read_human_counts() -> list[tuple[str, AnswerCounts, AnswerCounts, Decimal]]:
    """Return people's answers in table 16: creator, counts of real and of its clips, score in percent."""
    return [
        (
            row["creator"],
            AnswerCounts(int(row["real_total"]), int(row["real_predicted_fake"])),
            AnswerCounts(int(row["fake_total"]), int(row["fake_predicted_fake"])),
            Decimal(row["score"]) * PERCENT,
        )
        for row in read_published_table("reality_human").rows
    ]


def iter_human_scores() -> Iterator[Figure]:
    """Yield the human scores of table 16 and table 2: the mean of real and fake accuracy."""
    (human,) = (line for line in read_table_lines("reality_reviewers") if line.name == "Human")
    in_table_2 = {name.lower().replace(" ", ""): cell for name, cell in human.cells.items()}
    for creator, real, fake, score in read_human_counts():
        balanced = compute_balanced_accuracy(
            real_correct=real.said_real,
            n_real=real.valid,
            fake_correct=fake.said_fake,
            n_fake=fake.valid,
        )
        for printed in {score, in_table_2[creator.lower().replace(" ", "")]}:  # one, if equal
            yield (
                f"Human, {creator}",
                f"50 x ({real.said_real}/{real.valid} + {fake.said_fake}/{fake.valid})",
                round_to_two_places(balanced),
                printed,
                lambda: (Cause.UNEXPLAINED, "The counts give another score"),
            )


def check_published_figures(tables: CountTables | None = None) -> dict[str, FigureCheck]:
    """Return all checks by name; `tables` replaces the printed counts of Video Reality Test."""
    tables = read_count_tables() if tables is None else tables
    reviewers, creators = (read_table_lines(f"reality_{x}") for x in ("reviewers", "creators"))
    of_table_2 = list_cells("reality_reviewers", tables)
    of_table_3 = list_cells("reality_creators", tables)
    (n, n_real) = {(real.said_real, real.valid) for _, real, _, _ in read_human_counts()}.pop()
    because = f"The scores follow from {n} of {n_real}, and from no whole count of 30"
    human_clips = (
        "Human, real clips",
        "real clips of table 16",
        Decimal(n_real),
        Decimal(30),
        lambda: (Cause.TEXT_AGAINST_TABLE, because),
    )
    clips_by_score = (3, 7, 10, 6, 4)  # VideoRealBench's clips with the score 1 to 5
    n_pairs = comb(sum(clips_by_score), 2) - sum(comb(clips, 2) for clips in clips_by_score)
    ordered_pairs = (
        "ordered pairs",
        "30 x 29 / 2 less the ties",
        Decimal(n_pairs),
        Decimal(345),
        lambda: (Cause.UNEXPLAINED, "The scores give another number"),
    )
    mean = "unweighted mean of the printed cells of the line"
    place = "place of the unrounded mean; a line with audio bears the rank of the one without"
    checks = (
        compare(
            "DTR overall",
            "(accuracy + explanation + IoU + (100 - time distance)) / 4, within 0.05",
            iter_deeptrace_overall(),
        ),
        compare(
            "DTR accuracy",
            "100 (fake right + real right) / (fake rows + real rows), and each side alone",
            iter_deeptrace_accuracies(),
        ),
        compare(
            "DTR table 1 explained",
            "100 x explained / rows, for some whole number of explained rows",
            iter_deeptrace_explanation_rates(),
        ),
        compare(
            "VRT table 2 cells",
            "100 (real right + fake right) / (valid real + valid fake)",
            iter_cells(of_table_2, tables),
        ),
        compare("VRT table 2 averages", mean, iter_averages(reviewers, of_table_2)),
        compare("VRT table 2 ranks", place, iter_ranks(reviewers, best_is_high=True)),
        compare("VRT table 3 cells", "100 x said fake / valid", iter_cells(of_table_3, tables)),
        compare("VRT table 3 averages", mean, iter_averages(creators, of_table_3)),
        compare("VRT table 3 ranks", place, iter_ranks(creators, best_is_high=False)),
        compare(
            "VRT human table", "50 (real right / real + fake right / fake)", iter_human_scores()
        ),
        compare(
            "VRT human clips", "real clips in the text = real clips of table 16", [human_clips]
        ),
        compare(
            "VRB pairs",
            "30 x 29 / 2 less the ties of 3, 7, 10, 6 and 4 clips = 345",
            [ordered_pairs],
        ),
    )
    return {check.name: check for check in checks}


def write_page() -> str:
    """Return the page: one table of all checks, then the misprints of each."""
    checks = check_published_figures().values()

    def escape(text: str) -> str:
        return text.replace("|", "\\|").replace("*", "\\*")

    rows = [
        f"| {check.name} | {check.reproduced} of {check.total} | {escape(check.formula)} |"
        for check in checks
    ]
    parts = ["\n".join([HEAD, *rows])]
    for check in checks:
        if check.misprints:
            lines = [f"- {escape(str(misprint))}" for misprint in check.misprints]
            parts.append(f"## {check.name}\n\n" + "\n".join(lines))
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(write_page(), encoding="utf-8")
