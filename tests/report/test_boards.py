"""Boards say no more than the answers show: ranks, differences, intervals."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")
pytest.importorskip("jinja2", reason="needs the extra eval: pip install 'unreel[eval]'")

from report.contenders import FAILED, FAKE, REAL, board_of, clip, entrant
from unreel.benchmarks.entry import Entry
from unreel.core.estimate import Estimate, Unmeasured
from unreel.core.failure import Failure
from unreel.evaluation.comparison import ComparedReviewer, compare_reviewers
from unreel.report.boards.board import ReportBoard
from unreel.report.boards.breakdown_panels import (
    build_bias_panel,
    build_calibration_panel,
    build_coverage_panel,
    build_creators_panel,
    build_other_metrics_panel,
    build_whole_frame_panel,
    iter_benchmark_part_panels,
)
from unreel.report.boards.entrant_metrics import get_entrant_metric
from unreel.report.boards.ranking_panels import (
    build_difficulty_panel,
    build_leaderboard_panel,
    build_pairwise_differences_panel,
    compare_report_entrants,
    format_contender_difference,
)
from unreel.report.boards.tables import BoardTableCell, BoardTableColumn, ReportTable
from unreel.report.entrants import ReportEntrant

CLIPS = [
    *(clip(f"film-{i}") for i in range(12)),
    *(clip(f"veo-{i}", "Veo") for i in range(12)),
    *(clip(f"sora-{i}", "Sora") for i in range(12)),
]


def judge(clips: Sequence[Entry], *wrong: str) -> dict[str, str | Failure]:
    """Right answers about `clips`, but for those named."""
    flip = {REAL: FAKE, FAKE: REAL}
    right = {one.name: REAL if one.label == "real" else FAKE for one in clips}
    return {name: flip[said] if name in wrong else said for name, said in right.items()}


def reviewer(name: str, *wrong: str, clips: Sequence[Entry] = CLIPS) -> ReportEntrant:
    return entrant(name, clips, judge(clips, *wrong))


def floor(name: str, said: str, clips: Sequence[Entry] = CLIPS) -> ReportEntrant:
    return entrant(name, clips, {one.name: said for one in clips}, is_floor=True)


def ranks(board: ReportBoard) -> list[tuple[str, str]]:
    (table,) = build_leaderboard_panel(board).tables
    return [(line.cells[0].text, line.cells[1].text) for line in table.lines]


def reasons(board: ReportBoard) -> Mapping[str, str]:
    (table,) = build_leaderboard_panel(board).tables
    return {
        line.cells[1].text: line.cells[1].detail for line in table.lines if line.cells[1].detail
    }


SOUND = (
    reviewer("best", "veo-0"),
    reviewer("middle", "film-0", "veo-0", "veo-1", "sora-0", "sora-1"),
    reviewer("last", *(f"{maker}-{i}" for maker in ("film", "veo", "sora") for i in range(5))),
    floor("always-real", REAL),
    floor("always-generated", FAKE),
)
NO_SORA = judge(CLIPS) | {f"sora-{i}": "Hm." for i in range(12)}


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        (entrant("broken", CLIPS, NO_SORA), "not ranked: no readable answer for clips of Sora"),
        (
            entrant("broken", CLIPS, dict.fromkeys(NO_SORA, FAILED)),
            "not ranked: no readable answer to any of 36 questions",
        ),
        (
            entrant("broken", CLIPS, judge(CLIPS), n_pending=3),
            "not ranked: 3 questions not asked yet",
        ),
        (entrant("broken", [], {}, n_pending=36), "not ranked: 36 questions not asked yet"),
    ],
)
def test_a_broken_reviewer_changes_nobodys_place_and_is_told_why_it_has_none(
    broken: ReportEntrant, why: str
) -> None:
    before, after = board_of(*SOUND), board_of(broken, *SOUND)
    assert after.ranks_by == before.ranks_by
    assert ranks(after) == [*ranks(before), ("", "broken")]
    assert ranks(before)[:3] == [("1", "best"), ("2", "middle"), ("3", "last")]
    assert reasons(before) == {}
    assert reasons(after) == {"broken": why}
    assert (
        build_leaderboard_panel(after).charts[0].alt
        == build_leaderboard_panel(before).charts[0].alt
    )
    assert (
        build_leaderboard_panel(after).charts[0].spec
        == build_leaderboard_panel(before).charts[0].spec
    )


def test_whoever_failed_on_a_whole_creator_is_unranked_although_its_figure_exists() -> None:
    fails = {one.name: FAILED if one.name.startswith("sora") else "FAKE" for one in CLIPS}
    partial = entrant("partial", CLIPS, fails, instrument="trace")
    whole = entrant("whole", CLIPS, dict.fromkeys(fails, "FAKE"), instrument="trace")
    assert isinstance(partial.card["accuracy"], Estimate)
    board = board_of(partial, whole)
    assert ranks(board) == [("1", "whole"), ("", "partial")]
    assert reasons(board) == {"partial": "not ranked: no readable answer for clips of Sora"}


def test_intervals_that_overlap_do_not_hide_a_difference_on_the_same_clips() -> None:
    """Both miss the hard clips; one misses more of them, and never the other way round."""
    hard = [f"{maker}-{i}" for maker in ("film", "veo", "sora") for i in range(6)]
    good, bad = reviewer("good", *hard[::3]), reviewer("bad", *hard)
    first, second = good.card["balanced"], bad.card["balanced"]
    assert isinstance(first, Estimate)
    assert isinstance(second, Estimate)
    assert first.low < second.high
    told = build_leaderboard_panel(board_of(bad, good)).charts[0].alt
    assert "good is ahead of bad, the second" in told
    assert "overlap" not in told


def test_the_difference_is_that_of_the_figure_that_ranks() -> None:
    """Few real clips: plain accuracy would put the floor first, balanced accuracy does not."""
    clips = [*CLIPS[:8], *CLIPS[12:], *(clip(f"veo-{i}", "Veo") for i in range(12, 60))]
    careful = reviewer("careful", *(f"veo-{i}" for i in range(20)), clips=clips)
    naive = floor("always-generated", FAKE, clips)
    difference = compare_report_entrants(careful, naive).measured
    figures = [one.card["balanced"] for one in (careful, naive)]
    assert isinstance(difference, Estimate)
    assert [isinstance(each, Estimate) for each in figures] == [True, True]
    expected = figures[0].value - figures[1].value  # type: ignore[union-attr]
    assert difference.value == pytest.approx(expected)
    assert len([one for one in clips if one.label == "generated"]) > len(clips) - 20
    assert 0 < difference.low < difference.value < difference.high


def test_best_and_floor_are_told_apart_only_where_their_paired_difference_leaves_0_out() -> None:
    near = reviewer("near", *(f"film-{i}" for i in range(3)), *(f"sora-{i}" for i in range(4)))
    told = build_leaderboard_panel(board_of(near, floor("always-real", REAL))).charts[0].alt
    assert "near beats the baseline always-real" in told
    guess = reviewer("guess", *(f"film-{i}" for i in range(6)), *(f"sora-{i}" for i in range(11)))
    told = build_leaderboard_panel(board_of(guess, floor("always-real", REAL))).charts[0].alt
    assert "guess has not shown that it beats the baseline always-real" in told


def test_a_floor_far_above_the_best_reviewer_is_told_as_that() -> None:
    """Intervals of 50.8 to 85.1 and 86.2 to 100.0 were once said to overlap."""
    poor = reviewer(
        "poor", *(f"{maker}-{i}" for maker in ("film", "veo", "sora") for i in range(4))
    )
    strong = entrant("metadata", CLIPS, judge(CLIPS), is_floor=True)
    told = build_leaderboard_panel(board_of(poor, strong)).charts[0].alt
    assert "poor does worse than the baseline metadata" in told
    assert "overlap" not in told


def test_a_difference_of_few_clips_says_how_few() -> None:
    few = [one for one in CLIPS if one.name.endswith(("0", "1", "2", "3"))]
    board = board_of(reviewer("one", "veo-0", clips=few), floor("always-real", REAL, few))
    assert f"from only {len(few)} clips or scenes" in build_leaderboard_panel(board).charts[0].alt
    assert "from only" not in build_leaderboard_panel(board_of(*SOUND)).charts[0].alt


def test_clips_of_one_scene_are_drawn_together_in_a_difference() -> None:
    def of(group: str) -> Estimate:
        clips = [
            clip(f"{side}-{i}", side.strip("r"), group=group and f"scene {i % 6}")
            for side in ("r", "Veo")
            for i in range(36)
        ]
        wrong = [one.name for one in clips if one.name.endswith(("0", "6"))]
        measured = compare_report_entrants(
            reviewer("a", clips=clips), reviewer("b", *wrong, clips=clips)
        ).measured
        assert isinstance(measured, Estimate)
        return measured

    alone, together = of(""), of("scene")
    assert together.value == pytest.approx(alone.value)
    assert together.high - together.low > 1.1 * (alone.high - alone.low)


def test_reviewers_of_other_clips_are_not_compared() -> None:
    others = [clip(f"other-{one.name}", getattr(one.origin, "creator", "")) for one in CLIPS]
    here, there = reviewer("here"), reviewer("there", clips=others)
    measured = compare_report_entrants(here, there).measured
    assert measured == Unmeasured("here and there have answers about different clips")
    board = board_of(here, there)
    told = format_contender_difference(board, *board.contenders)
    assert told == (
        "here and there cannot be compared clip by clip: here and there have answers about different clips."
    )


def test_pairs_are_compared_by_order_and_scores_by_the_figure_that_ranks() -> None:
    pairs = [
        (clip(f"real-{i}"), clip(f"fake-{i}", "Veo"))
        if i % 3
        else (clip(f"fake-{i}", "Veo"), clip(f"real-{i}"))
        for i in range(30)
    ]
    first = entrant("first", pairs, {a.name: "1" for a, _ in pairs}, instrument="preference")
    second = entrant("second", pairs, {a.name: "2" for a, _ in pairs}, instrument="preference")
    measured = compare_report_entrants(first, second).measured
    assert isinstance(measured, Estimate)
    expected = first.card["accuracy"].value - second.card["accuracy"].value  # type: ignore[union-attr]
    assert measured.value == pytest.approx(expected)

    rated = [clip(f"clip-{i}", score=1 + i % 5) for i in range(30)]
    exact = {one.name: f"<answer>{one.rating.score}</answer>" for one in rated if one.rating}
    middle = {name: f"<answer>{2 + i % 3}</answer>" for i, name in enumerate(exact)}
    near = entrant("near", rated, exact, instrument="realism")
    far = entrant("far", rated, middle, instrument="realism")
    difference = compare_report_entrants(near, far)
    assert isinstance(difference.measured, Estimate)
    assert difference.measured.low > 0
    assert difference.metric.metric == near.instrument.figures.ranking


@pytest.mark.parametrize("instrument", ["reality", "trace", "realism"])
def test_no_number_with_an_interval_lacks_its_definition(instrument: str) -> None:
    said = {"reality": FAKE, "trace": "FAKE", "realism": "<answer>2</answer>"}[instrument]
    clips = [
        clip(f"{maker or 'film'}-{i}", maker, score=1 + i % 5)
        for maker in ("", "Veo")
        for i in range(8)
    ]
    answers = {one.name: said for one in clips}
    board = board_of(
        *(entrant(name, clips, answers, instrument=instrument) for name in ("one", "other"))
    )
    panels = (
        build_leaderboard_panel,
        build_pairwise_differences_panel,
        build_difficulty_panel,
        build_creators_panel,
        build_bias_panel,
        build_calibration_panel,
        build_other_metrics_panel,
        build_whole_frame_panel,
    )
    for panel in (make(board) for make in (*panels, build_coverage_panel)):
        for table in panel.all_tables if panel else ():
            for line in table.lines:
                for cell, column in zip(line.cells, table.columns, strict=True):
                    is_defined = column.metric is not None or table.metric is not None
                    assert is_defined or not isinstance(cell.number, Estimate), column.title


def test_few_clips_or_scenes_make_no_promise_of_95_in_100() -> None:
    def promise(clips: Sequence[Entry]) -> str:
        board = board_of(reviewer("one", "veo-0", "film-1", clips=clips))
        assert "95 times" not in build_leaderboard_panel(board).lead
        return build_leaderboard_panel(board).tables[0].promise

    many = [clip(f"{maker or 'film'}-{i}", maker) for maker in ("", "Veo") for i in range(40)]
    assert promise(many).startswith(
        "Intervals contain the true value 95 times of 100, those of very skewed"
    )
    assert "rest on" not in promise(many)
    assert "the least on 12" in promise(CLIPS)  # real clips
    scenes = [replace(one, group=f"scene {i % 9}") for i, one in enumerate(many)]
    assert "the least on 9" in promise(scenes)
    by_creator = build_creators_panel(board_of(reviewer("one", "veo-0", clips=CLIPS)))
    assert by_creator is not None
    assert "the least on 12" in by_creator.tables[0].promise


def test_creators_are_drawn_in_a_difference_as_in_the_figure_where_there_are_many() -> None:
    """One reviewer sees through some creators only: other creators might have given another lead."""

    def lead(n_creators: int) -> Estimate:
        clips = [clip(f"film-{i}") for i in range(48)]
        clips += [
            clip(f"{maker}-{i}", f"maker {maker}") for maker in range(n_creators) for i in range(8)
        ]
        half = [one.name for one in clips if one.name[0] in "02468"]
        measured = compare_report_entrants(
            reviewer("a", clips=clips), reviewer("b", *half, clips=clips)
        ).measured
        assert isinstance(measured, Estimate)
        assert measured.value == pytest.approx(25)
        return measured

    few, many = lead(4), lead(8)
    assert many.high - many.low > 1.5 * (few.high - few.low)


def test_every_declared_figure_that_was_measured_is_shown_and_parts_have_panels() -> None:
    clips = [replace(one, difficulty="hard" if i % 2 else "easy") for i, one in enumerate(CLIPS)]
    board = board_of(reviewer("one", "veo-0", "veo-1", clips=clips), floor("coin", FAKE, clips))
    (by_difficulty,) = iter_benchmark_part_panels(board)
    assert by_difficulty.heading == "By difficulty"
    table = by_difficulty.tables[0]
    assert [line.cells[0].text for line in table.lines] == ["easy", "hard"]
    assert [line.cells[0].link for line in table.lines] == ["", ""]
    assert isinstance(table.lines[0].cells[1].number, Estimate)
    panel = build_other_metrics_panel(board)
    assert panel is not None
    counts = {c.title: cell.number for c, cell in zip(*_first_line(panel.tables[-1]), strict=True)}
    assert sorted(n for n in counts.values() if isinstance(n, int)) == [0, 2, 12, 22]
    panels = (
        build_leaderboard_panel(board),
        build_bias_panel(board),
        build_creators_panel(board),
        panel,
    )
    shown = {f.metric for each in panels if each for t in each.all_tables for f in t.metrics}
    known = [
        f
        for f in board.protocol_definition.figures
        if isinstance(get_entrant_metric(board.entrants[0], f.metric), Estimate)
    ]
    assert {figure.metric for figure in known} <= shown


def _first_line(
    table: ReportTable,
) -> tuple[tuple[BoardTableColumn, ...], tuple[BoardTableCell, ...]]:
    return table.columns, table.lines[0].cells


def test_every_two_are_compared_and_told_apart_only_beyond_the_chance_of_so_many() -> None:
    broken = entrant("broken", CLIPS, NO_SORA)
    panel = build_pairwise_differences_panel(board_of(*SOUND, broken))
    assert panel is not None
    (table,) = panel.tables
    told = {tuple(cell.text for cell in line.cells[:2]): line.cells for line in table.lines}
    assert len(told) == 9  # ten pairs of five, less that of the floors
    assert "70 tests" in panel.lead  # seven metrics of ten pairs
    alone = compare_report_entrants(SOUND[0], SOUND[2]).measured
    together = told["best", "last"][2].number
    assert isinstance(alone, Estimate)
    assert isinstance(together, Estimate)
    assert together.value == alone.value
    assert (together.low, together.high) == (alone.low, alone.high)
    assert (told["best", "last"][5].text, told["best", "middle"][5].text) == ("yes", "no")
    assert build_pairwise_differences_panel(board_of(SOUND[3], SOUND[4])) is None


def test_corrected_p_values_are_those_of_compare() -> None:
    def shown_p(*entrants: ReportEntrant) -> dict[tuple[str, str], str]:
        panel = build_pairwise_differences_panel(board_of(*entrants))
        assert panel is not None
        lines = (line.cells for line in panel.tables[0].lines)
        return {(cells[0].text, cells[1].text): cells[4].text for cells in lines}

    for entrants in (SOUND[:2], SOUND[:4]):
        reviewers = [
            ComparedReviewer(
                reviewer=one.reviewer,
                condition=one.condition,
                instrument=one.instrument,
                names=[row.subject for row in one.rows],
                rows=one.rows,
            )
            for one in entrants
        ]
        compared = {
            (c.first, c.second): next(
                d.p_corrected for d in c.differences if d.metric == "balanced"
            )
            for c in compare_reviewers(reviewers)
        }
        assert shown_p(*entrants) == {pair: f"{p:.3f}" for pair, p in compared.items()}


@pytest.mark.parametrize("protocol", ["reality", "trace"])
def test_less_than_half_readable_has_no_rank(protocol: str) -> None:
    """Right wherever it is readable, which is once for each creator and for real clips."""
    words = {"real": REAL, "generated": FAKE}
    if protocol == "trace":
        words = {"real": "REAL", "generated": "FAKE"}
    right = {one.name: words[one.label.value] for one in CLIPS}
    silent = {name: text if name.endswith("-0") else "Hm." for name, text in right.items()}
    half = {name: "Hm." if int(name.split("-")[1]) % 2 else text for name, text in right.items()}
    board = board_of(
        entrant("silent", CLIPS, silent, instrument=protocol),
        entrant("half", CLIPS, half, instrument=protocol),
        entrant("whole", CLIPS, right, instrument=protocol),
    )
    assert reasons(board) == {
        "silent": "not ranked: only 3 of 36 answers are readable, less than half"
    }
    assert ranks(board)[2] == ("", "silent")


def test_calibration_names_the_share_of_generated_clips_for_which_it_holds() -> None:
    panel = build_calibration_panel(board_of(*SOUND))
    assert panel is not None
    assert "of which 67 % is generated" in panel.lead
