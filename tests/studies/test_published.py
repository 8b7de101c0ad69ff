"""The papers' figures follow from their counts, but for the misprints, each with its cause."""

from decimal import Decimal
from pathlib import Path

import pytest

from published.recompute import (
    PAGE,
    AnswerCounts,
    Cause,
    PrintedCell,
    check_published_figures,
    explain_cell,
    list_cells,
    read_count_tables,
    read_table_lines,
    round_to_two_places,
    write_page,
)
from unreel.benchmarks.published.printed_tables import SOURCES, read_published_table

CHECKS = check_published_figures()

PINNED = {
    "DTR overall": (42, 42),
    "DTR accuracy": (41, 42),
    "DTR table 1 explained": (6, 7),
    "VRT table 2 cells": (53, 69),
    "VRT table 2 averages": (13, 15),
    "VRT table 2 ranks": (13, 15),
    "VRT table 3 cells": (41, 47),
    "VRT table 3 averages": (10, 15),
    "VRT table 3 ranks": (13, 15),
    "VRT human table": (7, 7),
    "VRT human clips": (0, 1),
    "VRB pairs": (1, 1),
}

VEO = "Veo3.1-Fast"
CAUSES = {
    "val, Gemini 2.5 Pro": Cause.REPEATED_ROW,
    "Sora, explained": Cause.IMPOSSIBLE_SHARE,
    "Human, real clips": Cause.TEXT_AGAINST_TABLE,
    **{
        f"Qwen2.5-VL-72B, {column}": Cause.REPEATED_TABLE
        for column in read_table_lines("reality_reviewers")[0].cells
    },
    f"Qwen3-VL-8B, {VEO}": Cause.COUNT_SLIP,
    f"Qwen3-VL-30B-A3B, {VEO}": Cause.COUNT_SLIP,
    f"GPT-5, {VEO}": Cause.COUNT_SLIP,
    f"GLM-4.5V, {VEO}": Cause.HALF_POINT_OFF,
    f"Qwen3-VL-235B-A22B, {VEO}": Cause.ERROR_OF_PRINT,
    f"GPT-4o-mini, {VEO}": Cause.ROTATED_COUNTS,
    f"GPT-4o, {VEO}": Cause.ROTATED_COUNTS,
    f"Gemini-2.5-Flash, {VEO}": Cause.ROTATED_COUNTS,
    f"Gemini-2.5-Pro, {VEO}": Cause.ROTATED_COUNTS,
    "Qwen3-VL-30B-A3B, average": Cause.ERROR_OF_PRINT,
    "Gemini-3-Pro-Preview, average": Cause.ERROR_OF_PRINT,
    "Qwen3-VL-235B-A22B, rank": Cause.EXCHANGED_RANKS,
    "Gemini-2.5-Flash, rank": Cause.EXCHANGED_RANKS,
    "Veo-3.1-fast ImgText2Vid, GPT-4o-mini": Cause.ROTATED_COUNTS,
    "Veo-3.1-fast ImgText2Vid, GPT-4o": Cause.ROTATED_COUNTS,
    "Veo-3.1-fast ImgText2Vid, Gemini-2.5-Flash": Cause.ROTATED_COUNTS,
    "Veo-3.1-fast ImgText2Vid, Gemini-2.5-Pro": Cause.ROTATED_COUNTS,
    "Sora2 Text2Vid, Gemini-2.5-Pro": Cause.SWAPPED_TOTALS,
    "Sora2 ImgText2Vid, Gemini-2.5-Pro": Cause.SWAPPED_TOTALS,
    "OpenSora-V2 ImgText2Vid, average": Cause.HALF_POINT_OFF,
    "Wan2.2 ImgText2Vid-A14B, average": Cause.HALF_POINT_OFF,
    "Sora2 ImgText2Vid - Watermark, average": Cause.HALF_POINT_OFF,
    "StepVideo Text2Vid, average": Cause.HALF_POINT_OFF,
    "Veo-3.1-fast ImgText2Vid, average": Cause.COUNT_SLIP,
    "Wan2.2 ImgText2Vid-A14B, rank": Cause.WRONG_AVERAGE,
    "Sora2 ImgText2Vid - Watermark, rank": Cause.WRONG_AVERAGE,
}


def test_every_family_of_figures_reproduces_as_often_as_pinned() -> None:
    assert {name: (one.reproduced, one.total) for name, one in CHECKS.items()} == PINNED


def test_every_misprint_has_its_one_cause() -> None:
    found = {misprint.cell: misprint.cause for one in CHECKS.values() for misprint in one.misprints}
    assert found == CAUSES


def test_a_misprint_tells_formula_figures_and_evidence() -> None:
    slip = next(one for one in CHECKS["VRT table 2 cells"].misprints if "8B, Veo" in one.cell)
    assert str(slip) == (
        "Qwen3-VL-8B, Veo3.1-Fast: 100 x (77 + 37)/(100 + 99) = 57.29, printed 57.79. Likely one "
        "count or total differs from the one that was used. 38 of 99 instead of 37 of 99 gives the "
        "printed 57.79."
    )


def test_cells_without_counts_are_not_counted() -> None:
    tables = read_count_tables()
    lines = {name: read_table_lines(name) for name in ("reality_reviewers", "reality_creators")}
    missing = {
        name: {f"{line.name}, {column}" for line in lines[name] for column in line.cells}
        - {cell.name for cell in list_cells(name, tables)}
        for name in lines
    }
    assert {"Gemini-2.5-Flash, StepVideo", "Gemini-2.5-Pro + audio, Sora2"} < missing[
        "reality_reviewers"
    ]
    assert len(missing["reality_reviewers"]) == 15 * 7 - 69
    assert len(missing["reality_creators"]) == 13


def test_a_changed_count_is_noticed() -> None:
    tables = {number: dict(rows) for number, rows in read_count_tables().items()}
    tables[9]["Sora2 ImgText2Vid"] = AnswerCounts(valid=97, said_fake=89)
    changed = check_published_figures(tables)["VRT table 2 cells"]
    assert (changed.reproduced, changed.total) == (52, 69)


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == write_page(), "run studies/published/recompute.py"


def test_a_cell_that_begins_to_reproduce_is_noticed_too() -> None:
    tables = {number: dict(rows) for number, rows in read_count_tables().items()}
    tables[12]["Sora2 Text2Vid"] = AnswerCounts(valid=95, said_fake=93)
    assert check_published_figures(tables)["VRT table 3 cells"].reproduced == 42


def test_the_veo_rows_of_four_tables_are_rotated_by_one() -> None:
    tables = read_count_tables()
    veo = "Veo-3.1-fast ImgText2Vid"
    cells = [cell for cell in list_cells("reality_creators", tables) if cell.creator == veo]
    assert [(cell.table, cell.printed) for cell in cells] == [
        (15, Decimal("11.00")),
        (14, Decimal("5.00")),
        (13, Decimal("16.16")),
        (12, Decimal("17.00")),
    ]
    # Read from the table before, table 12 from table 15, each of the four comes out.
    assert all(
        cell.value(tables[{12: 15}.get(cell.table, cell.table - 1)][veo]) == cell.printed
        for cell in cells
    )


def test_a_cause_is_given_only_when_its_arithmetic_gives_the_printed_figure() -> None:
    tables = read_count_tables()
    veo = "Veo-3.1-fast ImgText2Vid"
    cell = PrintedCell(
        line="x",
        column="y",
        printed=Decimal("99.99"),
        table=13,
        creator=veo,
        real=None,
        fake=tables[13][veo],
    )
    assert explain_cell(cell, tables)[0] is Cause.ERROR_OF_PRINT


def test_no_whole_count_gives_the_row_that_val_took_from_test() -> None:
    test, val = (
        {row["model"]: row for row in read_published_table(f"deeptrace_{split}").rows}
        for split in ("test", "val")
    )
    (misprint,) = CHECKS["DTR accuracy"].misprints
    assert misprint.calculated is None
    name = "Gemini 2.5 Pro"
    assert test[name]["fake_accuracy"] == val[name]["fake_accuracy"] == "75.7"


@pytest.mark.parametrize(
    ("value", "printed"), [(22.975, "22.98"), (80, "80.00"), (57.594, "57.59")]
)
def test_video_reality_test_rounds_half_up_in_one_step(value: float, printed: str) -> None:
    assert str(round_to_two_places(value)) == printed


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_every_table_can_be_shown_with_its_place_in_print(name: str) -> None:
    table = read_published_table(name)
    assert table.paper
    assert table.table
    assert table.rows
    assert all(tuple(row) == table.columns and None not in row.values() for row in table.rows)


def test_the_package_carries_the_shared_figures_byte_for_byte(shared: Path) -> None:
    import unreel.benchmarks.published as package

    data = Path(package.__path__[0]) / "data"
    sources = [path for path in (shared / "published").iterdir() if path.suffix != ".md"]
    assert len(sources) == len(SOURCES) + 1
    copies = {
        path.name: path
        for path in (*data.iterdir(), PAGE.parents[1] / "studies/published/goldens.json")
    }
    assert all(copies[path.name].read_bytes() == path.read_bytes() for path in sources)
