"""Recalculation of Video Reality Test's printed cells, averages, ranks and human scores."""

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Final

from unreel.benchmarks.published.misprints import (
    MisprintCause,
    PrintedCell,
    PrintedMisprint,
    PrintedNumberCheckResult,
    explain_average_misprint,
    explain_cell_misprint,
    explain_rank_misprint,
    rank_printed_lines,
)
from unreel.benchmarks.published.printed_tables import (
    COLUMNS,
    COUNT_TABLES,
    REAL,
    CountTables,
    PrintedTableLine,
    read_printed_creator_lines,
    read_printed_human_answer_counts,
    read_printed_reviewer_lines,
    round_to_two_places,
)
from unreel.protocols.paper_formulas import PERCENT, compute_balanced_accuracy

HUMAN_REAL_IN_TEXT: Final = 30
"""Number of real clips that people judged, according to the text of the paper."""


def check_printed_reviewer_cells(tables: CountTables) -> PrintedNumberCheckResult:
    """Check table 2: the pooled accuracy of each reviewer against each creator."""
    return _check_printed_cells(
        list_printed_reviewer_cells(tables),
        name="VRT table 2 cells",
        formula="100 (real right + fake right) / (valid real + valid fake)",
        expected=(53, 69),
        printed=[
            f"{line.name}, {column}"
            for line in read_printed_reviewer_lines()
            for column in line.cells
        ],
        tables=tables,
    )


def check_printed_creator_cells(tables: CountTables) -> PrintedNumberCheckResult:
    """Check table 3: the percentage of each creator's clips that each reviewer calls generated."""
    return _check_printed_cells(
        list_printed_creator_cells(tables),
        name="VRT table 3 cells",
        formula="100 x said fake / valid",
        expected=(41, 47),
        printed=[
            f"{line.name}, {column}"
            for line in read_printed_creator_lines()
            for column in line.cells
        ],
        tables=tables,
    )


def check_printed_averages(
    lines: Sequence[PrintedTableLine], cells: Sequence[PrintedCell], *, name: str, expected: int
) -> PrintedNumberCheckResult:
    """Check the average of each line against its printed cells; `cells` are the cells with counts."""
    misprints = []
    for line in lines:
        calculated = round_to_two_places(_compute_table_line_mean(line))
        if calculated != line.average:
            cause, because = explain_average_misprint(
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
    return PrintedNumberCheckResult(
        name=name,
        formula="unweighted mean of the printed cells of the line",
        reproduced=len(lines) - len(misprints),
        total=len(lines),
        expected=expected,
        expected_total=15,
        misprints=tuple(misprints),
    )


def check_printed_ranks(
    lines: Sequence[PrintedTableLine], *, name: str, best_is_high: bool
) -> PrintedNumberCheckResult:
    """Check printed ranks by unrounded means; a `+ audio` line has the rank of the line without it."""
    ranks = rank_printed_lines(
        {line.name: _compute_table_line_mean(line) for line in lines},
        lines,
        best_is_high=best_is_high,
    )
    misprints = []
    for line in lines:
        if ranks[line.name] != line.rank:
            cause, because = explain_rank_misprint(
                line, lines, ranks=ranks, best_is_high=best_is_high
            )
            misprints.append(
                PrintedMisprint(
                    cell=f"{line.name}, rank",
                    formula=f"place of the mean {round_to_two_places(_compute_table_line_mean(line))}",
                    calculated=Decimal(ranks[line.name]),
                    printed=Decimal(line.rank),
                    cause=cause,
                    because=because,
                )
            )
    return PrintedNumberCheckResult(
        name=name,
        formula="place of the unrounded mean; a line with audio bears the rank of the one without",
        reproduced=len(lines) - len(misprints),
        total=len(lines),
        expected=13,
        expected_total=15,
        misprints=tuple(misprints),
    )


def check_printed_human_scores() -> PrintedNumberCheckResult:
    """Check the human scores of table 16 and table 2: the mean of real and fake accuracy."""
    rows = read_printed_human_answer_counts()
    human = next(line for line in read_printed_reviewer_lines() if line.name == "Human")
    in_table_2 = {_normalise_creator_name(name): cell for name, cell in human.cells.items()}
    misprints = []
    for row in rows:
        value = compute_balanced_accuracy(
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
    return PrintedNumberCheckResult(
        name="VRT human table",
        formula="50 (real right / real + fake right / fake)",
        reproduced=len(rows) - len(misprints),
        total=len(rows),
        expected=7,
        expected_total=7,
        misprints=tuple(misprints),
    )


def check_printed_human_clip_count() -> PrintedNumberCheckResult:
    """Check the printed number of real clips shown to people: the text against table 16."""
    rows = read_printed_human_answer_counts()
    ((n_real, right),) = {(row.n_real, row.real_correct) for row in rows}
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
    return PrintedNumberCheckResult(
        name="VRT human clips",
        formula="real clips in the text = real clips of table 16",
        reproduced=1 - len(wrong),
        total=1,
        expected=0,
        expected_total=1,
        misprints=wrong,
    )


def list_printed_reviewer_cells(tables: CountTables) -> list[PrintedCell]:
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
        for line in read_printed_reviewer_lines()
        for column, printed in line.cells.items()
        if line.name in COUNT_TABLES and COLUMNS[column] in tables[COUNT_TABLES[line.name]]
    ]


def list_printed_creator_cells(tables: CountTables) -> list[PrintedCell]:
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
        for line in read_printed_creator_lines()
        for column, printed in line.cells.items()
        if line.name in tables[COUNT_TABLES[column]]
    ]


def _check_printed_cells(
    cells: Sequence[PrintedCell],
    *,
    name: str,
    formula: str,
    expected: tuple[int, int],
    printed: Sequence[str],
    tables: CountTables,
) -> PrintedNumberCheckResult:
    wrong = [cell for cell in cells if cell.value() != cell.printed]
    with_counts = {cell.name for cell in cells}
    return PrintedNumberCheckResult(
        name=name,
        formula=formula,
        reproduced=len(cells) - len(wrong),
        total=len(cells),
        expected=expected[0],
        expected_total=expected[1],
        misprints=tuple(_build_cell_misprint(cell, tables) for cell in wrong),
        no_counts=tuple(cell for cell in printed if cell not in with_counts),
    )


def _build_cell_misprint(cell: PrintedCell, tables: CountTables) -> PrintedMisprint:
    cause, because = explain_cell_misprint(cell, tables)
    return PrintedMisprint(
        cell=cell.name,
        formula=cell.formula,
        calculated=cell.value(),
        printed=cell.printed,
        cause=cause,
        because=because,
    )


def _compute_table_line_mean(line: PrintedTableLine) -> Fraction:
    return sum(map(Fraction, line.cells.values()), Fraction()) / len(line.cells)


def _normalise_creator_name(creator: str) -> str:
    return creator.lower().replace(" ", "")
