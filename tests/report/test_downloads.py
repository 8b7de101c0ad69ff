"""The tables of a report as files: every number with its interval, and nothing that acts."""

import csv
import io
import re
from dataclasses import replace

import pytest

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")
pytest.importorskip("jinja2", reason="needs the extra eval: pip install 'unreel[eval]'")

from unreel.core.estimate import Estimate, Unmeasured
from unreel.report.boards.board import BoardPanel
from unreel.report.boards.table_downloads import (
    add_table_file_names,
    format_table_csv,
    format_table_latex,
)
from unreel.report.boards.tables import (
    BoardTableCell,
    BoardTableColumn,
    BoardTableRow,
    ReportTable,
    TableFootnotes,
    build_count_cell,
    build_estimate_cell,
)

NOTES = TableFootnotes()
HALF = Estimate(value=50.04, low=-2.5, high=97.51, n=4, n_clusters=4)
LINES = (
    BoardTableRow(
        cells=(
            BoardTableCell(text="=HYPERLINK(1)", detail="not ranked: why"),
            build_estimate_cell(HALF, NOTES),
            build_count_cell(12_345),
        ),
        kind="reviewer",
    ),
    BoardTableRow(
        cells=(
            BoardTableCell(text=r"a_b & \input{x}", badge="floor"),
            build_estimate_cell(Unmeasured("no judge"), NOTES),
            build_count_cell(0),
        ),
        kind="floor",
    ),
)
TABLE = ReportTable(
    caption="All of it, 100 %",
    columns=(
        BoardTableColumn(title="Reviewer", numbers=False),
        BoardTableColumn(title="@Box"),
        BoardTableColumn(title="Asked"),
    ),
    lines=LINES,
    notes=NOTES.listed(),
)


def test_a_csv_has_each_number_in_a_column_of_its_own_and_the_reason_of_each_gap() -> None:
    rows = list(csv.DictReader(io.StringIO(format_table_csv(TABLE))))
    assert rows[0] == {
        "Reviewer": "'=HYPERLINK(1)",
        "Reviewer, note": "not ranked: why",
        "'@Box": "50.04",
        "'@Box, low": "-2.5",
        "'@Box, high": "97.51",
        "'@Box, n": "4",
        "'@Box, not measured": "",
        "Asked": "12345",
        "Kind": "reviewer",
    }
    assert rows[1]["'@Box"] == ""
    assert rows[1]["'@Box, not measured"] == "no judge"
    assert rows[1]["Kind"] == "floor"


def test_latex_has_the_intervals_and_says_in_its_caption_what_the_page_says_below() -> None:
    shown = format_table_latex(TABLE)
    assert r"'=HYPERLINK" not in shown
    assert r"50.0 [-2.5, 97.5]" in shown
    assert r"a\_b \& \textbackslash{}input\{x\} (floor) & (a) & 0 \\" in shown
    assert r"\toprule" in shown
    caption = next(line for line in shown.splitlines() if line.startswith(r"\caption"))
    assert caption.startswith(r"\caption{All of it, 100 \%. Intervals contain the true value")
    assert "the least on 4" in caption
    assert caption.endswith("(a) not measured: no judge.}")


def test_columns_of_contenders_with_one_name_stay_apart() -> None:
    names = ("Reviewer", "Reviewer", "Reviewer (2)")
    table = ReportTable(
        caption="",
        columns=tuple(BoardTableColumn(title=name) for name in names),
        lines=(BoardTableRow(cells=tuple(build_count_cell(i) for i in range(3))),),
    )
    told = format_table_csv(table).splitlines()
    assert told == ["Reviewer,Reviewer (2),Reviewer (2) (2)", "0,1,2"]


def test_every_table_of_a_panel_has_files_of_its_own() -> None:
    panel = BoardPanel(
        id="board-0-x", heading="X", lead="", tables=(TABLE, TABLE), extras=(("more", (TABLE,)),)
    )
    named = add_table_file_names(panel)
    assert [table.file for table in named.all_tables] == [
        "tables/board-0-x",
        "tables/board-0-x-2",
        "tables/board-0-x-3",
    ]
    assert named.extras[0][0] == "more"


COMMANDS = {
    *("usepackage", "begin", "end", "caption", "toprule", "midrule", "bottomrule"),
    *("textbackslash", "textasciitilde", "textasciicircum", "textless", "textgreater", "textbar"),
}


@pytest.mark.parametrize(
    "name", ["[a]", "*", "100 %", r"\end{table}", "a & b", "{", "}", "$x_1^2$"]
)
def test_latex_is_one_well_formed_table_whatever_names_hold(name: str) -> None:
    line = BoardTableRow(cells=(BoardTableCell(text=name), *LINES[0].cells[1:]))
    columns = (BoardTableColumn(title=name, numbers=False), *TABLE.columns[1:])
    latex = format_table_latex(replace(TABLE, caption=name, columns=columns, lines=(line, *LINES)))
    written = re.sub(r"\\[&%$#_{}]", "", "\n".join(latex.splitlines()[1:]))
    assert set(re.findall(r"\\([a-zA-Z]+)", written)) <= COMMANDS
    assert re.findall(r"\\(?:begin|end)\{\w+\}", written) == [
        r"\begin{table}",
        r"\begin{tabular}",
        r"\end{tabular}",
        r"\end{table}",
    ]
    assert written.count("{") == written.count("}")
    assert not set("%#_^~") & set(written)
    rows = [row for row in written.splitlines() if row.endswith(r"\\")]
    assert [row.count("&") for row in rows] == [len(columns) - 1] * 4
    assert not any(row.startswith(("[", "*")) for row in rows)
