"""The papers' figures follow from their counts, but for the misprints, each with its cause."""

from collections import Counter
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

from unreel.benchmarks.published.check import check_published_numbers, count_untied_pairs
from unreel.benchmarks.published.misprints import (
    MisprintCause,
    PrintedCell,
    PrintedMisprint,
    PrintedNumberCheckResult,
    explain_cell_misprint,
)
from unreel.benchmarks.published.printed_tables import (
    COUNT_TABLES,
    REAL,
    SOURCES,
    RealAndGeneratedAnswerCounts,
    read_printed_cell_counts,
    read_printed_count_tables,
    read_printed_deeptrace_rows,
    read_printed_explanation_rates,
    read_printed_reviewer_lines,
    read_published_table,
    round_to_two_places,
)
from unreel.benchmarks.published.reality_test_check import (
    check_printed_creator_cells,
    check_printed_reviewer_cells,
    list_printed_creator_cells,
    list_printed_reviewer_cells,
)
from unreel.core.errors import UnknownNameError

CHECKS = {found.name: found for found in check_published_numbers()}

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
    "val, Gemini 2.5 Pro": MisprintCause.REPEATED_ROW,
    "Sora, explained": MisprintCause.IMPOSSIBLE_SHARE,
    "Human, real clips": MisprintCause.TEXT_AGAINST_TABLE,
    **{
        f"Qwen2.5-VL-72B, {column}": MisprintCause.REPEATED_TABLE
        for column in read_printed_reviewer_lines()[0].cells
    },
    f"Qwen3-VL-8B, {VEO}": MisprintCause.COUNT_SLIP,
    f"Qwen3-VL-30B-A3B, {VEO}": MisprintCause.COUNT_SLIP,
    f"GPT-5, {VEO}": MisprintCause.COUNT_SLIP,
    f"GLM-4.5V, {VEO}": MisprintCause.HALF_POINT_OFF,
    f"Qwen3-VL-235B-A22B, {VEO}": MisprintCause.ERROR_OF_PRINT,
    f"GPT-4o-mini, {VEO}": MisprintCause.ROTATED_COUNTS,
    f"GPT-4o, {VEO}": MisprintCause.ROTATED_COUNTS,
    f"Gemini-2.5-Flash, {VEO}": MisprintCause.ROTATED_COUNTS,
    f"Gemini-2.5-Pro, {VEO}": MisprintCause.ROTATED_COUNTS,
    "Qwen3-VL-30B-A3B, average": MisprintCause.ERROR_OF_PRINT,
    "Gemini-3-Pro-Preview, average": MisprintCause.ERROR_OF_PRINT,
    "Qwen3-VL-235B-A22B, rank": MisprintCause.EXCHANGED_RANKS,
    "Gemini-2.5-Flash, rank": MisprintCause.EXCHANGED_RANKS,
    "Veo-3.1-fast ImgText2Vid, GPT-4o-mini": MisprintCause.ROTATED_COUNTS,
    "Veo-3.1-fast ImgText2Vid, GPT-4o": MisprintCause.ROTATED_COUNTS,
    "Veo-3.1-fast ImgText2Vid, Gemini-2.5-Flash": MisprintCause.ROTATED_COUNTS,
    "Veo-3.1-fast ImgText2Vid, Gemini-2.5-Pro": MisprintCause.ROTATED_COUNTS,
    "Sora2 Text2Vid, Gemini-2.5-Pro": MisprintCause.SWAPPED_TOTALS,
    "Sora2 ImgText2Vid, Gemini-2.5-Pro": MisprintCause.SWAPPED_TOTALS,
    "OpenSora-V2 ImgText2Vid, average": MisprintCause.HALF_POINT_OFF,
    "Wan2.2 ImgText2Vid-A14B, average": MisprintCause.HALF_POINT_OFF,
    "Sora2 ImgText2Vid - Watermark, average": MisprintCause.HALF_POINT_OFF,
    "StepVideo Text2Vid, average": MisprintCause.HALF_POINT_OFF,
    "Veo-3.1-fast ImgText2Vid, average": MisprintCause.COUNT_SLIP,
    "Wan2.2 ImgText2Vid-A14B, rank": MisprintCause.WRONG_AVERAGE,
    "Sora2 ImgText2Vid - Watermark, rank": MisprintCause.WRONG_AVERAGE,
}


def test_every_family_of_figures_reproduces_as_often_as_pinned() -> None:
    assert {name: (one.reproduced, one.total) for name, one in CHECKS.items()} == PINNED
    assert all(one.ok for one in CHECKS.values())


def test_every_misprint_has_its_one_cause() -> None:
    found = {misprint.cell: misprint.cause for one in CHECKS.values() for misprint in one.misprints}
    assert found == CAUSES


def test_a_likely_cause_is_called_likely() -> None:
    assert "ikely" in MisprintCause.COUNT_SLIP.sentence
    assert "ikely" in MisprintCause.HALF_POINT_OFF.sentence
    assert all(cause.sentence for cause in MisprintCause)


def test_a_misprint_tells_formula_figures_and_evidence() -> None:
    slip = next(one for one in CHECKS["VRT table 2 cells"].misprints if "8B, Veo" in one.cell)
    assert str(slip) == (
        "Qwen3-VL-8B, Veo3.1-Fast: 100 x (77 + 37)/(100 + 99) = 57.29, printed 57.79. Likely one "
        "count or total differs from the one that was used. 38 of 99 instead of 37 of 99 gives the "
        "printed 57.79."
    )


def test_cells_without_counts_are_listed_and_not_counted() -> None:
    table_2, table_3 = CHECKS["VRT table 2 cells"], CHECKS["VRT table 3 cells"]
    assert "Gemini-2.5-Flash, StepVideo" in table_2.no_counts
    assert "Gemini-2.5-Pro + audio, Sora2" in table_2.no_counts
    assert len(table_2.no_counts) == 15 * 7 - 69
    assert len(table_3.no_counts) == 13
    assert {cell.partition(", ")[0] for cell in table_3.no_counts} == {
        "Sora2 ImgText2Vid + Audio",
        "Sora2 ImgText2Vid - Watermark",
        "StepVideo Text2Vid",
        "Veo-3.1-fast ImgText2Vid + Audio",
    }


def test_one_changed_count_fails_the_check() -> None:
    tables = {number: dict(rows) for number, rows in read_printed_count_tables().items()}
    tables[9]["Sora2 ImgText2Vid"] = RealAndGeneratedAnswerCounts(valid=97, said_fake=89)
    changed = check_printed_reviewer_cells(tables)
    assert (changed.reproduced, changed.total) == (52, 69)
    assert not changed.ok
    assert "expected 53 of 69" in str(changed)


def test_a_cell_that_begins_to_reproduce_fails_the_check_too() -> None:
    tables = {number: dict(rows) for number, rows in read_printed_count_tables().items()}
    tables[12]["Sora2 Text2Vid"] = RealAndGeneratedAnswerCounts(valid=95, said_fake=93)
    assert check_printed_creator_cells(tables).reproduced == 42
    assert not check_printed_creator_cells(tables).ok


def test_a_check_whose_misprints_lack_a_cause_is_not_ok() -> None:
    assert not PrintedNumberCheckResult(
        name="n", formula="f", reproduced=1, total=2, expected=1, expected_total=2
    ).ok


def test_the_veo_rows_of_four_tables_are_rotated_by_one() -> None:
    tables = read_printed_count_tables()
    veo = "Veo-3.1-fast ImgText2Vid"
    cells = [cell for cell in list_printed_creator_cells(tables) if cell.creator == veo]
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


def test_table_8_repeats_table_7_but_for_one_row() -> None:
    tables = read_printed_count_tables()
    differ = [source for source, count in tables[8].items() if tables[7][source] != count]
    assert differ == ["Veo-3.1-fast ImgText2Vid"]


def test_a_cause_is_given_only_when_its_arithmetic_gives_the_printed_figure() -> None:
    tables = read_printed_count_tables()
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
    assert explain_cell_misprint(cell, tables)[0] is MisprintCause.ERROR_OF_PRINT


def test_no_whole_count_gives_the_row_that_val_took_from_test() -> None:
    test, val = (
        {row.model: row for row in read_printed_deeptrace_rows(split)} for split in ("test", "val")
    )
    (misprint,) = CHECKS["DTR accuracy"].misprints
    assert isinstance(misprint, PrintedMisprint)
    assert misprint.calculated is None
    name = "Gemini 2.5 Pro"
    assert test[name].fake_accuracy == val[name].fake_accuracy == Decimal("75.7")


def test_no_whole_count_of_38_rows_gives_the_share_of_sora() -> None:
    (misprint,) = CHECKS["DTR table 1 explained"].misprints
    assert str(misprint) == (
        "Sora, explained: 100 x ?/38 = nothing, printed 58.2. No whole count gives the printed share. "
        "Of 38 rows 22 gives 57.9 and 23 gives 60.5."
    )


def test_the_rows_of_table_1_are_those_of_the_splits() -> None:
    splits = read_published_table("deeptrace_splits").rows
    assert sum(row.annotations for row in read_printed_explanation_rates()) == 4334
    assert sum(int(row["fake_annotations"]) for row in splits) == 4334


def test_people_saw_40_real_clips_by_the_table_and_30_by_the_text() -> None:
    (misprint,) = CHECKS["VRT human clips"].misprints
    assert (misprint.calculated, misprint.printed) == (40, 30)
    assert not any(
        round_to_two_places(Fraction(100 * n, 30)) == Decimal("82.50") for n in range(31)
    )
    assert round_to_two_places(Fraction(100 * 33, 40)) == Decimal("82.50")


def test_cells_agree_with_the_calculations_of_the_goldens() -> None:
    given = read_printed_cell_counts()["video_reality_test"]
    tables = read_printed_count_tables()
    of_table_2 = {
        (f"(T{cell.table})", cell.fake): cell for cell in list_printed_reviewer_cells(tables)
    }
    compared = 0
    for row in given["table2"]:
        if row["status"] == "no_counts":
            continue
        count = RealAndGeneratedAnswerCounts(valid=row["fake_n"], said_fake=row["fake_correct"])
        cell = of_table_2[row["model"].split()[-1], count]
        assert cell.printed == Decimal(str(row["printed"]))
        assert cell.value() == Decimal(str(row["calc"]))
        assert (cell.value() == cell.printed) is (row["status"] == "ok")
        compared += 1
    assert compared == 69


def test_table_3_agrees_with_the_calculations_of_the_goldens() -> None:
    rows = [
        row
        for row in read_printed_cell_counts()["video_reality_test"]["table3"]
        if row["col"] != "Avg"
    ]
    wanted = Counter(
        (row["col"].split(" (")[0], Decimal(str(row["printed"])), Decimal(str(row["calc"])))
        for row in rows
        if row["status"] != "no_counts"
    )
    found = Counter(
        (cell.column, cell.printed, cell.value())
        for cell in list_printed_creator_cells(read_printed_count_tables())
    )
    assert found == wanted


def test_counts_agree_with_the_counts_of_the_goldens() -> None:
    given = read_printed_cell_counts()["video_reality_test"]["counts"]
    tables = read_printed_count_tables()
    for reviewer, rows in given.items():
        number = int(reviewer.split("(T")[1].rstrip(")"))
        found = Counter(tables[number].values())
        assert found == Counter(
            RealAndGeneratedAnswerCounts(valid=n, said_fake=fake) for n, fake, _ in rows.values()
        )
        assert tables[number][REAL] == RealAndGeneratedAnswerCounts(
            valid=rows["real"][0], said_fake=rows["real"][1]
        )
    assert len(given) == len(tables) == len(COUNT_TABLES)


def test_overall_agrees_with_the_goldens() -> None:
    for split in ("test", "val"):
        for row, golden in zip(
            read_printed_deeptrace_rows(split),
            read_printed_cell_counts()["deeptracereward"][split],
            strict=True,
        ):
            assert row.overall == Decimal(str(golden["printed"]["overall"]))
            assert row.fake_accuracy == Decimal(str(golden["printed"]["fake_acc"]))
            assert golden["overall_ok"]


def test_thirty_clips_give_345_ordered_pairs() -> None:
    assert count_untied_pairs((3, 7, 10, 6, 4)) == 345
    assert count_untied_pairs((1, 1)) == 1
    assert count_untied_pairs((2,)) == 0


@pytest.mark.parametrize(
    ("value", "printed"), [(22.975, "22.98"), (80, "80.00"), (57.594, "57.59")]
)
def test_video_reality_test_rounds_half_up_in_one_step(value: float, printed: str) -> None:
    assert str(round_to_two_places(value)) == printed


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_every_table_can_be_shown_with_its_place_in_print(name: str) -> None:
    table = read_published_table(name)
    assert table.source.paper
    assert table.source.table
    assert table.rows
    assert all(tuple(row) == table.columns and None not in row.values() for row in table.rows)


def test_an_unknown_table_lists_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'reality_human'"):
        read_published_table("reality_humans")


def test_the_package_carries_the_shared_figures_byte_for_byte(shared: Path) -> None:
    import unreel.benchmarks.published as package

    data = Path(package.__path__[0]) / "data"
    sources = [path for path in (shared / "published").iterdir() if path.suffix != ".md"]
    assert len(sources) == len(SOURCES) + 1
    assert all((data / path.name).read_bytes() == path.read_bytes() for path in sources)
