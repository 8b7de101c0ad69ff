"""What boards and contenders are called: no two alike, whatever sets them apart."""

from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")
pytest.importorskip("jinja2", reason="needs the extra eval: pip install 'unreel[eval]'")

from report.contenders import FAKE, REAL, board_of, clip, entrant
from unreel.core.question import Condition
from unreel.report.boards.board import (
    ReportBoard,
    add_distinct_board_names,
    build_contender_names,
    build_unfilled_report_board,
)
from unreel.report.boards.ranking_panels import build_pairwise_differences_panel
from unreel.report.entrants import ReportEntrant, group_entrants_by_questions

CLIPS = [clip(f"real-{i}") for i in range(12)] + [clip(f"veo-{i}", "Veo") for i in range(12)]
RIGHT = {one.name: FAKE if one.name.startswith("veo") else REAL for one in CLIPS}
WRONG = {name: REAL if said == FAKE else FAKE for name, said in RIGHT.items()}


def seer(**changes: Any) -> ReportEntrant:
    """A reviewer that is always right, asked in that way."""
    return replace(entrant("seer", CLIPS, RIGHT), **changes)


def boards_of(*entrants: ReportEntrant) -> list[ReportBoard]:
    """The boards of a report on these."""
    places = {id(one): place for place, one in enumerate(entrants)}
    shared = group_entrants_by_questions(entrants)
    return add_distinct_board_names(
        [
            build_unfilled_report_board(each, [places[id(one)] for one in each], number=number)
            for number, each in enumerate(shared)
        ]
    )


def test_a_board_alone_is_named_by_instrument_benchmark_and_limit() -> None:
    (board,) = boards_of(seer(extent="first 24 clips"))
    assert board.name == "Real or generated: bench, first 24 clips"
    assert board.distinctions == ()


def test_boards_that_differ_in_limit_alone_are_told_apart_by_it() -> None:
    boards = boards_of(seer(), seer(extent="first 24 clips"))
    assert [board.distinctions for board in boards] == [("all clips",), ("first 24 clips",)]
    assert [board.name for board in boards] == [
        "Real or generated: bench, all clips",
        "Real or generated: bench, first 24 clips",
    ]
    assert build_contender_names(boards) == {0: "seer · all clips", 1: "seer · first 24 clips"}


def test_boards_that_differ_in_condition_too_say_so() -> None:
    heard = seer(extent="first 24 clips", condition=Condition(audio="on"))
    boards = boards_of(seer(), heard, seer(extent="first 24 clips", condition=heard.condition))
    assert [board.distinctions for board in boards] == [
        ("all clips", "audio off"),
        ("first 24 clips", "audio on"),
    ]
    assert build_contender_names(boards) == {
        0: "seer · all clips · audio off",
        1: "seer (1) · first 24 clips · audio on",
        2: "seer (2) · first 24 clips · audio on",
    }


def test_benchmarks_in_folders_of_one_name_are_told_apart_by_the_folders_above() -> None:
    boards = boards_of(
        seer(benchmark="/data/a/clips"),
        seer(benchmark="/data/b/clips"),
        seer(benchmark="/data/b/clips/table.csv"),
    )
    assert [board.benchmark for board in boards] == ["a/clips", "b/clips", "b/clips/table.csv"]
    assert len({board.name for board in boards}) == 3


def test_versions_of_one_instrument_are_told_apart() -> None:
    asked = seer().instrument
    older = replace(asked, instrument=replace(asked.instrument, version=0))
    boards = boards_of(seer(), seer(instrument=older))
    assert [board.distinctions for board in boards] == [(str(asked.instrument),), ("reality@0",)]


def test_contenders_of_one_name_are_never_one_even_where_a_third_has_the_number() -> None:
    third = replace(seer(), reviewer="seer (2)")
    names = [contender.name for contender in board_of(seer(), seer(), third).contenders]
    assert sorted(names) == ["seer (1)", "seer (2)", "seer (3)"]


def test_two_conditions_of_one_model_are_compared_on_the_clips_that_both_answered() -> None:
    deaf = replace(entrant("seer", CLIPS, WRONG), condition=Condition(audio="off"))
    board = board_of(seer(condition=Condition(audio="on")), deaf)
    assert [contender.name for contender in board.contenders] == [
        "seer · audio on",
        "seer · audio off",
    ]
    panel = build_pairwise_differences_panel(board)
    assert panel is not None
    (line,) = panel.tables[0].lines
    assert [cell.text for cell in line.cells] == [
        "seer · audio on",
        "seer · audio off",
        "100.0",
        "24",
        "0.000",
        "yes",
    ]


def test_reviewers_asked_about_more_and_about_less_are_compared_on_what_both_saw() -> None:
    some = [one for one in CLIPS if int(one.name.partition("-")[2]) < 8]
    blind = replace(entrant("blind", some, WRONG), extent="first 16 clips")
    first, second = boards_of(seer(), blind)
    panel = build_pairwise_differences_panel(first, [second])
    assert panel is not None
    (table,) = panel.tables
    assert (
        table.caption
        == "Clips in common of all clips and first 16 clips, first minus second, balanced accuracy"
    )
    (line,) = table.lines
    assert [cell.text for cell in line.cells] == [
        "seer · all clips",
        "blind · first 16 clips",
        "100.0",
        "16",
        "0.000",
        "yes",
    ]


def test_nobody_is_compared_with_the_same_answers_on_another_board() -> None:
    first, second = boards_of(seer(), seer(extent="first 24 clips"))
    assert build_pairwise_differences_panel(first, [second]) is None
