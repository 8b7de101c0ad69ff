"""Video Reality Test's cells, averages, ranks and human scores, recalculated."""

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Final

from unreel.benchmarks.published.causes import (
    PrintedCell,
    explain_average,
    explain_cell,
    explain_rank,
    rank_by,
)
from unreel.benchmarks.published.tables import (
    COLUMNS,
    COUNT_TABLES,
    REAL,
    CountTables,
    PrintedLine,
    creator_lines,
    human_rows,
    reviewer_lines,
    round_to_two_places,
)
from unreel.benchmarks.published.verdicts import FigureCheck, MisprintCause, PrintedMisprint
from unreel.protocols.formulas import PERCENT, balanced_accuracy

HUMAN_REAL_IN_TEXT: Final = 30
"""Real clips that people judged, as the text has it."""


def check_reviewer_cells(tables: CountTables) -> FigureCheck:
    """Check table 2: the pooled accuracy of each reviewer against each creator."""
    return _check_cells(
        reviewer_cells(tables),
        name="VRT table 2 cells",
        formula="100 (real right + fake right) / (valid real + valid fake)",
        expected=(53, 69),
        printed=[f"{line.name}, {column}" for line in reviewer_lines() for column in line.cells],
        tables=tables,
    )


def check_creator_cells(tables: CountTables) -> FigureCheck:
    """Check table 3: the percentage of each creator's clips that each reviewer calls generated."""
    return _check_cells(
        creator_cells(tables),
        name="VRT table 3 cells",
        formula="100 x said fake / valid",
        expected=(41, 47),
        printed=[f"{line.name}, {column}" for line in creator_lines() for column in line.cells],
        tables=tables,
    )


def check_averages(
    lines: Sequence[PrintedLine], cells: Sequence[PrintedCell], *, name: str, expected: int
) -> FigureCheck:
    """Check the average of each line against its printed cells; `cells` are the cells with counts."""
    misprints = []
    for line in lines:
        calculated = round_to_two_places(_compute_mean(line))
        if calculated != line.average:
            cause, because = explain_average(
                line, [cell for cell in cells if cell.line == line.name]
            )
            misprints.append(
                PrintedMisprint(
                    cell=f"{line.name}, average",
                    formula=f"({' + '.join(map(str, line.cells.values()))})/{len(line.cells)}",
                    calculated=calculated,
                    printed=line.average,
                    cause=cause,
                    because=because,
                )
            )
    return FigureCheck(
        name=name,
        formula="unweighted mean of the printed cells of the line",
        reproduced=len(lines) - len(misprints),
        total=len(lines),
        expected=expected,
        expected_total=15,
        misprints=tuple(misprints),
    )


def check_ranks(lines: Sequence[PrintedLine], *, name: str, best_is_high: bool) -> FigureCheck:
    """Check the ranks of `lines` by unrounded mean; a `+ audio` line has the rank of its base line."""
    ranks = rank_by(
        {line.name: _compute_mean(line) for line in lines}, lines, best_is_high=best_is_high
    )
    misprints = []
    for line in lines:
        if ranks[line.name] != line.rank:
            cause, because = explain_rank(line, lines, ranks=ranks, best_is_high=best_is_high)
            misprints.append(
                PrintedMisprint(
                    cell=f"{line.name}, rank",
                    formula=f"place of the mean {round_to_two_places(_compute_mean(line))}",
                    calculated=Decimal(ranks[line.name]),
                    printed=Decimal(line.rank),
                    cause=cause,
                    because=because,
                )
            )
    return FigureCheck(
        name=name,
        formula="place of the unrounded mean; a line with audio bears the rank of the one without",
        reproduced=len(lines) - len(misprints),
        total=len(lines),
        expected=13,
        expected_total=15,
        misprints=tuple(misprints),
    )


def check_humans() -> FigureCheck:
    """Check table 16 and the human line of table 2: the mean of real and fake accuracy."""
    rows = human_rows()
    human = next(line for line in reviewer_lines() if line.name == "Human")
    in_table_2 = {_normalise_creator_name(name): cell for name, cell in human.cells.items()}
    misprints = []
    for row in rows:
        value = balanced_accuracy(
            real_correct=row.real_correct,
            n_real=row.n_real,
            fake_correct=row.fake_correct,
            n_fake=row.n_fake,
        )
        calculated = round_to_two_places(value)
        if (
            not calculated
            == row.score * PERCENT
            == in_table_2[_normalise_creator_name(row.creator)]
        ):
            misprints.append(
                PrintedMisprint(
                    cell=f"Human, {row.creator}",
                    formula=f"50 x ({row.real_correct}/{row.n_real} + {row.fake_correct}/{row.n_fake})",
                    calculated=calculated,
                    printed=row.score * PERCENT,
                    cause=MisprintCause.UNEXPLAINED,
                    because="The counts give another score",
                )
            )
    return FigureCheck(
        name="VRT human table",
        formula="50 (real right / real + fake right / fake)",
        reproduced=len(rows) - len(misprints),
        total=len(rows),
        expected=7,
        expected_total=7,
        misprints=tuple(misprints),
    )


def check_human_clips() -> FigureCheck:
    """Check the number of real clips shown to people: the text says 30, every row of table 16 counts them."""
    (counted,) = {(row.n_real, row.real_correct) for row in human_rows()}
    n_real, right = counted
    misprint = PrintedMisprint(
        cell="Human, real clips",
        formula="real clips of table 16",
        calculated=Decimal(n_real),
        printed=Decimal(HUMAN_REAL_IN_TEXT),
        cause=MisprintCause.TEXT_AGAINST_TABLE,
        because=f"The scores follow from {right} of {n_real}, and from no whole count of "
        f"{HUMAN_REAL_IN_TEXT}",
    )
    wrong = () if n_real == HUMAN_REAL_IN_TEXT else (misprint,)
    return FigureCheck(
        name="VRT human clips",
        formula="real clips in the text = real clips of table 16",
        reproduced=1 - len(wrong),
        total=1,
        expected=0,
        expected_total=1,
        misprints=wrong,
    )


def reviewer_cells(tables: CountTables) -> list[PrintedCell]:
    """Return the cells of table 2 that have counts, in printed order."""
    return [
        PrintedCell(
            line=line.name,
            column=column,
            printed=printed,
            table=COUNT_TABLES[line.name],
            creator=COLUMNS[column],
            real=tables[COUNT_TABLES[line.name]][REAL],
            fake=tables[COUNT_TABLES[line.name]][COLUMNS[column]],
        )
        for line in reviewer_lines()
        for column, printed in line.cells.items()
        if line.name in COUNT_TABLES and COLUMNS[column] in tables[COUNT_TABLES[line.name]]
    ]


def creator_cells(tables: CountTables) -> list[PrintedCell]:
    """Return the cells of table 3 that have counts, in printed order."""
    return [
        PrintedCell(
            line=line.name,
            column=column,
            printed=printed,
            table=COUNT_TABLES[column],
            creator=line.name,
            real=None,
            fake=tables[COUNT_TABLES[column]][line.name],
        )
        for line in creator_lines()
        for column, printed in line.cells.items()
        if line.name in tables[COUNT_TABLES[column]]
    ]


def _check_cells(
    cells: Sequence[PrintedCell],
    *,
    name: str,
    formula: str,
    expected: tuple[int, int],
    printed: Sequence[str],
    tables: CountTables,
) -> FigureCheck:
    wrong = [cell for cell in cells if cell.value() != cell.printed]
    counted = {cell.name for cell in cells}
    return FigureCheck(
        name=name,
        formula=formula,
        reproduced=len(cells) - len(wrong),
        total=len(cells),
        expected=expected[0],
        expected_total=expected[1],
        misprints=tuple(_build_misprint(cell, tables) for cell in wrong),
        no_counts=tuple(cell for cell in printed if cell not in counted),
    )


def _build_misprint(cell: PrintedCell, tables: CountTables) -> PrintedMisprint:
    cause, because = explain_cell(cell, tables)
    return PrintedMisprint(
        cell=cell.name,
        formula=cell.formula,
        calculated=cell.value(),
        printed=cell.printed,
        cause=cause,
        because=because,
    )


def _compute_mean(line: PrintedLine) -> Fraction:
    return sum(map(Fraction, line.cells.values()), Fraction()) / len(line.cells)


def _normalise_creator_name(creator: str) -> str:
    return creator.lower().replace(" ", "")
