"""Both boards of a play."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arena.ranked_plays import lineup, play, without
from unreel.arena.answers.answer_table import SeasonAnswerTable
from unreel.arena.boards.leaderboard_metrics import REAL_CLIPS, LeaderboardRow, SeasonLeaderboard
from unreel.arena.boards.ranking import rank_season_entrants
from unreel.core.errors import InvalidValueError, UnknownNameError
from unreel.core.estimate import Estimate, Unmeasured

CREATORS = ("crude", "fine", "so-so")
SHARP = {"real": 0.1, "crude": 0.95, "so-so": 0.7, "fine": 0.3, "recompressed": 0.2}
DULL = {"real": 0.3, "crude": 0.6, "so-so": 0.4, "fine": 0.3, "recompressed": 0.4}
COIN = dict.fromkeys(SHARP, 0.5)


def _played(**reviewers: dict[str, float]) -> SeasonAnswerTable:
    chances = {"coin": COIN, "dull": DULL, "sharp": SHARP, **reviewers}
    return play(
        lineup(60, CREATORS, ("recompressed",)), dict(sorted(chances.items())), floors=["coin"]
    )


def _named(leaderboards: SeasonLeaderboard, name: str) -> LeaderboardRow:
    (found,) = [
        one for one in (*leaderboards.reviewers, *leaderboards.creators) if one.name == name
    ]
    return found


def _value(row: LeaderboardRow, name: str) -> Estimate:
    value = row.figures[name]
    assert isinstance(value, Estimate)
    return value


def test_the_sharper_reviewer_and_the_finer_creator_lead() -> None:
    standings = rank_season_entrants(_played(), seed=0, resamples=200)
    assert [(one.name, one.rank) for one in standings.reviewers] == [
        ("sharp", 1),
        ("dull", 2),
        ("coin", None),
    ]
    assert [(one.name, one.rank, one.kind) for one in standings.creators] == [
        ("fine", 1, "creator"),
        ("so-so", 2, "creator"),
        ("crude", 3, "creator"),
        ("recompressed", None, "control"),
    ]


def test_accuracy_pools_real_clips_with_one_creator_at_a_time_and_averages_unrounded() -> None:
    played = _played()
    standings = rank_season_entrants(played, seed=0, resamples=50)
    line = played.reviewers.index("sharp")
    mine = played.reviewer == line
    said, clip = played.answer_codes[mine], played.clip[mine]
    creator, control = played.clips.creator[clip], played.clips.control[clip]
    real = (creator < 0) & (control < 0)
    parts = []
    for place in range(len(CREATORS)):
        right = int((said[real] == 0).sum() + (said[creator == place] == 1).sum())
        parts.append(Fraction(right, int(real.sum() + (creator == place).sum())))
    assert _value(_named(standings, "sharp"), "accuracy").value == pytest.approx(
        float(100 * sum(parts) / len(parts)), abs=1e-9
    )


def test_silence_is_left_out_of_one_figure_and_wrong_in_the_other() -> None:
    always = {"real": 0.0, "crude": 1.0, "fine": 1.0, "so-so": 1.0}
    played = play(lineup(80, CREATORS), {"perfect": always}, silent=0.25, seed=3)
    perfect = _named(rank_season_entrants(played, seed=0, resamples=200), "perfect")
    answered = _value(perfect, "answered")
    assert _value(perfect, "accuracy").value == 100
    assert _value(perfect, "plain").value == 100
    assert _value(perfect, "plain-all").value == pytest.approx(answered.value)
    assert _value(perfect, "accuracy-all").value == pytest.approx(answered.value, abs=3)
    assert _value(perfect, "accuracy").low < 100


def test_controls_count_as_real_in_their_own_figure_and_nowhere_else() -> None:
    calm = {**SHARP, "recompressed": 0.0}
    alarmed = {**SHARP, "recompressed": 1.0}
    before, after = (
        rank_season_entrants(_played(third=third), seed=0, resamples=50)
        for third in (calm, alarmed)
    )
    assert _value(_named(before, "third"), "control-false-alarms").value == 0
    assert _value(_named(after, "third"), "control-false-alarms").value == 100
    for name in set(_named(before, "third").figures) - {"control-false-alarms", "answered"}:
        assert _named(before, "third").figures[name] == _named(after, "third").figures[name]
    assert [one.figures for one in before.creators[:3]] == [
        one.figures for one in after.creators[:3]
    ]


def test_floors_are_shown_without_a_rank_and_do_not_judge_creators() -> None:
    with_coin, alone = _played(), without(_played(), "coin")
    board = rank_season_entrants(with_coin, seed=0, resamples=50)
    assert _named(board, "coin").rank is None
    assert "accuracy" in _named(board, "coin").figures
    for name in CREATORS:
        bare = _named(rank_season_entrants(alone, seed=0, resamples=50), name)
        assert _named(board, name).figures["fakeness"] == bare.figures["fakeness"]


@settings(max_examples=12, deadline=None)
@given(
    leaves_out=st.sets(st.sampled_from([*CREATORS, "real"]), min_size=1),
    chance=st.floats(0, 1),
    seed=st.integers(0, 5),
)
def test_a_reviewer_that_lacks_cells_is_shown_and_changes_nobody(
    leaves_out: set[str], chance: float, seed: int
) -> None:
    partial = {name: chance for name in SHARP if name not in leaves_out}
    played = _played(partial=partial)
    board = rank_season_entrants(played, seed=seed, resamples=60)
    bare = rank_season_entrants(without(played, "partial"), seed=seed, resamples=60)
    shown = _named(board, "partial")
    assert shown.rank is None
    assert not shown.first_class
    assert set(shown.lacks) == {REAL_CLIPS if name == "real" else name for name in leaves_out}
    for one in (*bare.reviewers, *bare.creators):
        other = _named(board, one.name)
        assert (one.rank, one.first_class, one.above, one.surely_above) == (
            other.rank,
            other.first_class,
            other.above,
            other.surely_above,
        )
        for name in set(one.figures) - {"ability", "bias", "realism"}:
            assert one.figures[name] == other.figures[name]


def test_one_clip_that_was_not_asked_about_is_a_lacking_cell() -> None:
    played = _played()
    fine = CREATORS.index("fine")
    line = played.reviewers.index("dull")
    chosen = np.flatnonzero(
        (played.reviewer == line) & (played.clips.creator[played.clip] == fine)
    )[:1]
    stays = np.ones(len(played.answer_codes), dtype=bool)
    stays[chosen] = False
    fewer = SeasonAnswerTable(
        clips=played.clips,
        condition="test",
        reviewers=played.reviewers,
        floors=played.floors,
        reviewer=played.reviewer[stays],
        clip=played.clip[stays],
        answer_codes=played.answer_codes[stays],
    )
    board = rank_season_entrants(fewer, seed=0, resamples=50)
    assert _named(board, "dull").lacks == ("fine",)
    assert _named(board, "dull").rank is None
    assert _named(board, "sharp").rank == 1


def test_who_stands_above_whom_is_told_by_shares_that_add_up() -> None:
    board = rank_season_entrants(_played(twin=SHARP), seed=0, resamples=200)
    for one in board.reviewers:
        for name, share in one.above.items():
            assert share + _named(board, name).above[one.name] == pytest.approx(1)
    assert _named(board, "sharp").above["dull"] > 0.99
    assert "dull" in _named(board, "sharp").surely_above
    assert "twin" not in _named(board, "sharp").surely_above
    assert _named(board, "twin").first_class
    assert not _named(board, "dull").first_class


def test_reviewers_that_answer_alike_share_a_place() -> None:
    played = _played(twin=SHARP)
    sharp, twin = (played.reviewers.index(name) for name in ("sharp", "twin"))
    said = played.answer_codes.copy()
    said[played.reviewer == twin] = said[played.reviewer == sharp]
    alike = SeasonAnswerTable(
        clips=played.clips,
        condition="test",
        reviewers=played.reviewers,
        floors=played.floors,
        reviewer=played.reviewer,
        clip=played.clip,
        answer_codes=said,
    )
    board = rank_season_entrants(alike, seed=0, resamples=50)
    assert [(one.name, one.rank) for one in board.reviewers][:3] == [
        ("sharp", 1),
        ("twin", 1),
        ("dull", 3),
    ]
    assert _named(board, "sharp").above["twin"] == 0.5


def test_without_real_clips_creators_are_ranked_and_reviewers_are_not() -> None:
    played = play(lineup(30, CREATORS, real=False), {"dull": DULL, "sharp": SHARP})
    board = rank_season_entrants(played, seed=0, resamples=50)
    assert [one.rank for one in board.reviewers] == [None, None]
    assert isinstance(board.reviewers[0].figures["accuracy"], Unmeasured)
    assert [one.rank for one in board.creators] == [1, 2, 3]


def test_a_clip_answered_twice_is_refused() -> None:
    played = _played()
    doubled = {
        name: np.concatenate([getattr(played, name), getattr(played, name)[:1]])
        for name in ("reviewer", "clip", "answer_codes")
    }
    twice = SeasonAnswerTable(
        clips=played.clips, condition="", reviewers=played.reviewers, **doubled
    )
    with pytest.raises(InvalidValueError, match="twice"):
        rank_season_entrants(twice, seed=0, resamples=10)


def test_who_is_silent_about_most_of_a_creators_clips_has_no_rank() -> None:
    played = _played()
    line = played.reviewers.index("dull")
    fine = np.flatnonzero(
        (played.reviewer == line) & (played.clips.creator[played.clip] == CREATORS.index("fine"))
    )
    for n_silent, lacks in ((30, ()), (31, ("fine",))):
        said = played.answer_codes.copy()
        said[fine[:n_silent]] = -1
        board = rank_season_entrants(replace(played, answer_codes=said), seed=0, resamples=20)
        assert _named(board, "dull").lacks == lacks
        assert (_named(board, "dull").rank is None) == bool(lacks)


def test_constant_and_contrary_reviewers_are_told_by_ability_and_bias() -> None:
    constant = dict.fromkeys(SHARP, 1.0)
    contrary = {name: 1 - chance for name, chance in SHARP.items()}
    board = rank_season_entrants(_played(always=constant, contrary=contrary), seed=0, resamples=50)
    always, contrary_one = _named(board, "always"), _named(board, "contrary")
    assert _value(always, "bias").low > 0
    assert str(always.figures["ability"]) == str(
        Unmeasured("the answers hardly depend on the clip")
    )
    assert _value(contrary_one, "ability").high < 0
    assert _value(always, "balanced").value == 50


def test_a_nuisance_is_told_beside_the_boards_and_an_unknown_one_is_refused() -> None:
    played = _played()
    n_clips = len(played.clips.names)
    columns = np.column_stack([np.arange(n_clips) % 7, np.full(n_clips, np.nan)])
    of = replace(played.clips, nuisances=("length", "motion"), nuisance=columns)
    board = rank_season_entrants(
        replace(played, clips=of), seed=0, resamples=20, nuisances=("motion", "length")
    )
    assert isinstance(board.sway["length"], Estimate)
    assert board.sway["length"].low < 0 < board.sway["length"].high
    assert isinstance(board.sway["motion"], Unmeasured)
    with pytest.raises(UnknownNameError, match="length"):
        rank_season_entrants(replace(played, clips=of), seed=0, resamples=20, nuisances=("lenght",))


def test_a_creator_without_clips_and_a_single_scene_leave_the_others_standing() -> None:
    played = _played()
    of = replace(played.clips, creators=(*CREATORS, "none"))
    board = rank_season_entrants(replace(played, clips=of), seed=0, resamples=20)
    assert _named(board, "none").rank is None
    assert _named(board, "sharp").rank == 1
    alone = rank_season_entrants(
        play(lineup(1, CREATORS), {"dull": DULL, "sharp": SHARP}), seed=0, resamples=20
    )
    assert {one.rank for one in alone.reviewers} <= {1, 2}
    assert all(not one.surely_above for one in alone.reviewers)
