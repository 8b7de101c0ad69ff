"""People stand beside models by the figures that they have, and are never ranked."""

from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")
pytest.importorskip("jinja2", reason="needs the extra eval: pip install 'unreel[eval]'")

from report.contenders import FAKE, REAL, board_of, clip, entrant
from report.reported import HOSTILE
from unreel.benchmarks.human_scores import (
    PEOPLE,
    AnnotatorScoreRow,
    HumanScores,
    write_human_scores,
)
from unreel.core.estimate import Estimate
from unreel.core.output_files import OutputDirectory
from unreel.report.boards.board import ReportBoard
from unreel.report.boards.ranking_panels import build_leaderboard_panel
from unreel.report.boards.table_downloads import build_table_files
from unreel.report.entrants import ReportEntrant

CLIPS = [*(clip(f"film-{i}") for i in range(4)), *(clip(f"veo-{i}", "Veo") for i in range(4))]
SAID = {one.name: REAL if one.label == "real" else FAKE for one in CLIPS}


def _row(name: str, value: float | None, **given: object) -> AnnotatorScoreRow:
    figures = {}
    if value is not None:
        figures["balanced"] = Estimate(value=value, low=value - 5, high=value + 5, n=8)
    row = AnnotatorScoreRow(
        name=name,
        kind="annotator",
        protocol="reality",
        version=2,
        against="origin",
        n_judged=8,
        figures=figures,
    )
    return replace(row, **given)


def _entrant(folder: Path, *, fingerprint: str = "") -> ReportEntrant:
    asked = entrant("model", CLIPS, SAID)
    return replace(asked, benchmark=str(folder), fingerprint=fingerprint)


def _board(
    folder: Path, *rows: AnnotatorScoreRow, about: str = "", fingerprint: str = ""
) -> ReportBoard:
    version = entrant("model", CLIPS, SAID).instrument.instrument.version
    told = tuple(replace(row, version=version) if row.version == 2 else row for row in rows)
    write_human_scores(
        OutputDirectory(folder), HumanScores(campaign="spring", fingerprint=about, rows=told)
    )
    return board_of(_entrant(folder, fingerprint=fingerprint))


def _lines(board: ReportBoard) -> list[tuple[str, str, str]]:
    (table,) = build_leaderboard_panel(board).tables
    return [(line.cells[0].text, line.cells[1].text, line.kind) for line in table.lines]


def test_people_stand_below_reviewers_without_a_rank_the_majority_first(tmp_path: Path) -> None:
    rows = (_row("ann", 70.0), _row("bob", 90.0), _row("majority", 85.0, kind="majority"))
    board = _board(tmp_path, *rows)
    assert _lines(board) == [
        ("1", "model", "reviewer"),
        ("", "people: majority", "people"),
        ("", "people: bob", "people"),
        ("", "people: ann", "people"),
    ]
    assert "3" not in [place for place, _, _ in _lines(board)]
    assert (
        "2 people judged these clips in the campaign spring" in build_leaderboard_panel(board).lead
    )


def test_whoever_lacks_the_ranking_figure_has_an_empty_place_with_its_reason(
    tmp_path: Path,
) -> None:
    board = _board(tmp_path, _row("ann", None), _row("bob", 60.0))
    panel = build_leaderboard_panel(board)
    (table,) = panel.tables
    last = table.lines[-1]
    assert last.cells[1].text == "people: ann"
    assert last.cells[2].text == ""
    assert dict(table.notes)[last.cells[2].note] == "no score for annotators"
    drawn = {point["who"] for point in panel.charts[0].spec["data"]["values"]}
    assert drawn == {"model", "people: bob"}


def test_what_they_were_held_against_stands_in_the_table_and_in_its_file(tmp_path: Path) -> None:
    board = _board(tmp_path, _row("ann", 70.0, against="others"))
    (table,) = build_leaderboard_panel(board).tables
    assert table.lines[-1].cells[1].detail == "against the consensus of the others"
    (sheet,) = [
        t for n, t in build_table_files(replace(table, file="x")).items() if n.endswith("csv")
    ]
    assert "people: ann" in sheet
    assert "against the consensus of the others" in sheet


def test_rows_of_another_instrument_are_not_shown(tmp_path: Path) -> None:
    board = _board(tmp_path, _row("ann", 70.0, protocol="trace"), _row("bob", 9.0, version=99))
    assert [kind for _, _, kind in _lines(board)] == ["reviewer"]


def test_rows_of_another_version_of_the_benchmark_are_told_and_not_shown(tmp_path: Path) -> None:
    board = _board(tmp_path, _row("ann", 70.0), about="1-aa", fingerprint="1-bb")
    assert [kind for _, _, kind in _lines(board)] == ["reviewer"]
    assert "another version of this benchmark" in build_leaderboard_panel(board).lead
    same = _board(tmp_path, _row("ann", 70.0), about="1-aa", fingerprint="1-aa")
    assert len(_lines(same)) == 2


def test_a_damaged_file_of_people_does_not_take_the_report_away(tmp_path: Path) -> None:
    (tmp_path / PEOPLE).write_text(HOSTILE)
    board = board_of(_entrant(tmp_path))
    assert [kind for _, _, kind in _lines(board)] == ["reviewer"]
    assert "People's rows are not shown" in build_leaderboard_panel(board).lead
