"""Tables as CSV, LaTeX and Markdown: what a cell says stays, what it would do does not."""

import csv
import html
import io
import re

import pytest
from markdown_it import MarkdownIt

from unreel.core.safe_text import MARK
from unreel.core.table_formats import build_csv_table, build_latex_table, build_markdown_table


def test_csv_keeps_columns_rows_and_words_with_commas_and_quotes() -> None:
    rows = [{"name": 'a, "b"', "value": 1.5}, {"name": "", "value": "93.1 [90, 95]"}]
    found = list(csv.reader(io.StringIO(build_csv_table(("name", "value"), rows))))
    assert found == [["name", "value"], ['a, "b"', "1.5"], ["", "93.1 [90, 95]"]]


@pytest.mark.parametrize(
    "cell",
    [
        "=1+1",
        "+cmd|' /C calc'!A0",
        "-2+3",
        "@SUM(A1)",
        "\t=1",
        "\r=1",
        " =1",
        "\u3000=1",
        "\uff1d1+1",
        "-inf()",
        "--1",
    ],
)
def test_no_cell_of_a_csv_starts_a_formula(cell: str) -> None:
    text = build_csv_table((cell,), [{cell: cell}])
    for line in csv.reader(io.StringIO(text)):
        assert line[0].startswith(("'", MARK))
        assert line[0].endswith(cell.strip("\t\r"))


def test_a_line_end_in_a_cell_ends_no_row() -> None:
    assert build_csv_table(("x",), [{"x": "a\r\nb"}]) == f"x\na{MARK}{MARK}b\n"
    assert f"a{MARK}{MARK}b" in build_latex_table(("x",), [{"x": "a\r\nb"}])


def test_latex_is_a_booktabs_table_with_numbers_to_the_right() -> None:
    rows = [{"name": "a_1", "value": "93.10"}, {"name": "b & c", "value": "-4"}]
    assert build_latex_table(("name", "value"), rows, caption="50 % of it") == "\n".join(
        (
            r"% needs \usepackage{booktabs}",
            r"\begin{table}",
            r"\caption{50 \% of it}",
            r"\begin{tabular}{lr}",
            r"\toprule",
            r"name & value \\",
            r"\midrule",
            r"a\_1 & 93.10 \\",
            r"b \& c & $-$4 \\",
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        )
    )


def test_no_word_of_a_stranger_is_a_command_in_latex() -> None:
    hostile = r"\input{/etc/passwd}%$^_#~&{}"
    shown = build_latex_table(("x",), [{"x": hostile}])
    assert (
        r"\textbackslash{}input\{/etc/passwd\}\%\$\textasciicircum{}\_\#\textasciitilde{}\&\{\}"
        in shown
    )


@pytest.mark.parametrize("cell", ["[1, 2]", "*"])
def test_a_cell_at_the_start_of_a_row_is_no_argument_of_the_row_before(cell: str) -> None:
    assert f"\n{{}}{cell} " in build_latex_table(("x",), [{"x": cell}])


def test_dashes_and_angles_show_as_they_are_written() -> None:
    assert r"a-{}-b \textless{}c\textgreater{} d\textbar{}e" in build_latex_table(
        ("x",), [{"x": "a--b <c> d|e"}]
    )


@pytest.mark.parametrize(
    "cell",
    [
        r"\[click](https://evil.example)",
        r"\\[click](https://evil.example)",
        r"\<img src=x onerror=alert(1)>",
        r"\<script>alert(1)</script>",
        r"\`code` \| another cell",
        "<https://evil.example>",
        "![picture](https://evil.example/x.png)",
        "**bold** __bold__ *it* _it_ ~~gone~~",
        "&lt;b&gt; &amp; &#60;",
        "a\\",
        "--- | ---",
    ],
)
def test_a_cell_of_a_markdown_table_is_shown_as_it_is_written(cell: str) -> None:
    page = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    shown = page.render(build_markdown_table(("x", "y"), [(cell, "end")]))
    cells = re.findall(r"<td>(.*?)</td>", shown)
    assert [html.unescape(each) for each in cells] == [cell, "end"]
    assert "<" not in "".join(cells)


def test_a_bare_address_in_a_markdown_table_is_no_link() -> None:
    # Hubs make links of bare addresses; an escaped colon ends that, and is shown as a colon.
    assert r"https\://evil.example" in build_markdown_table(("x",), [("https://evil.example",)])
