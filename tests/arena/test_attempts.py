"""Ten private tries of one generator bring no better place than one."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from arena.plays import lineup, play
from unreel.arena.answers.answer_table import SeasonAnswerTable, SeasonClips, exclude_entrants
from unreel.arena.boards.ranking import rank_season_entrants
from unreel.arena.fairness.team_attempts import (
    CorrectedBestAttempt,
    Kind,
    collect_team_attempts,
    correct_best_attempt,
    is_leaderboard_row_of_entry,
    rank_one_attempt_per_team,
)
from unreel.arena.submission.season_log import EntryState, SeasonLog, SeasonLogEvent, SeasonLogLine
from unreel.core.estimate import Estimate, Unmeasured

N_TRIES = 10
TRIES = tuple(f"try-{number}" for number in range(N_TRIES))
RIVAL = "rival"
SCENES = 40
REVIEWERS = 5


def _equal_season(seed: int) -> SeasonAnswerTable:
    """Ten tries and a rival that are caught equally often: scenes differ, clips differ, creators do not."""
    shown: SeasonClips = lineup((RIVAL, *TRIES), n_scenes=SCENES)
    rng = np.random.default_rng(seed)
    n_makers = 2 + N_TRIES
    hard = rng.normal(0, 1, SCENES)[:, None] + rng.normal(0, 1, (SCENES, n_makers))
    odds = np.repeat(hard.ravel()[None], REVIEWERS, axis=0)
    said = rng.random(odds.shape) < 1 / (1 + np.exp(-odds))
    reviewer, clip = np.nonzero(np.ones(said.shape))
    return SeasonAnswerTable(
        lineup=shown,
        condition="main",
        reviewers=tuple(f"r{number}" for number in range(REVIEWERS)),
        reviewer=reviewer.astype(np.int32),
        clip=clip.astype(np.int32),
        said=said.ravel().astype(np.int8),
    )


def _caught(season: SeasonAnswerTable, creator: str) -> float:
    own = season.lineup.creator[season.clip] == season.lineup.creators.index(creator)
    return 100 * float(season.said[own].mean())


def _best(
    season: SeasonAnswerTable, entries: Sequence[str], kind: Kind = "creator"
) -> CorrectedBestAttempt:
    found = correct_best_attempt(season, entries, kind=kind, seed=0)
    assert isinstance(found, CorrectedBestAttempt)
    return found


def test_the_best_of_ten_tries_stands_no_higher_than_an_equal_rival() -> None:
    """Rate of standing above the rival over 200 seasons: raw far above a half, corrected and first try not."""
    raw = corrected = first = 0
    for seed in range(200):
        season = _equal_season(seed)
        rival, best = _caught(season, RIVAL), _best(season, TRIES)
        assert isinstance(best.corrected, Estimate)
        raw += best.raw < rival
        corrected += best.corrected.value < rival
        first += _caught(season, TRIES[0]) < rival
    assert raw / 200 >= 0.8
    assert corrected / 200 <= 0.55
    assert first / 200 <= 0.58  # 0.5 but for chance: P(more) < 0.02


def test_one_try_loses_nothing() -> None:
    season = _equal_season(1)
    best = _best(season, TRIES[:1])
    assert isinstance(best.corrected, Estimate)
    assert abs(best.corrected.value - best.raw) < 0.5
    assert best.raw == pytest.approx(_caught(season, TRIES[0]))


def test_more_tries_lose_more() -> None:
    season = _equal_season(2)
    lost = []
    for n_tries in (2, 5, 10):
        best = _best(season, TRIES[:n_tries])
        assert isinstance(best.corrected, Estimate)
        lost.append(best.corrected.value - best.raw)
    assert lost == sorted(lost)
    assert lost[0] > 0


def test_the_best_of_several_reviewers_is_corrected_downwards() -> None:
    shown = lineup(("Sora", "Wan"), n_scenes=40)
    season = play(shown, {f"r{number}": 0.5 for number in range(6)})
    best = _best(season, season.reviewers, "reviewer")
    assert isinstance(best.corrected, Estimate)
    assert best.corrected.value < best.raw


def test_few_scenes_correct_nothing() -> None:
    shown = lineup(("a", "b"), n_scenes=3)
    found = correct_best_attempt(play(shown, {"ada": 1.0}), ("a", "b"), kind="creator", seed=0)
    assert isinstance(found, Unmeasured)


def _history(
    *told: tuple[str, EntryState] | tuple[str, EntryState, bool], team: str = "Blue"
) -> SeasonLog:
    lines = []
    for entry, state, *declared in told:
        event = SeasonLogEvent(
            entry=entry,
            state=state,
            at_us=0,
            kind="creator",
            team=team,
            declared=bool(declared and declared[0]),
            seed=len(lines),
        )
        lines.append(SeasonLogLine(event, "", ""))
    return SeasonLog(lines=tuple(lines))


def test_the_first_accepted_try_is_ranked() -> None:
    (tries,) = collect_team_attempts(
        _history(
            ("a", EntryState.SUBMITTED),
            ("a", EntryState.REFUSED),
            ("b", EntryState.SUBMITTED),
            ("b", EntryState.ACCEPTED),
            ("c", EntryState.SUBMITTED),
            ("c", EntryState.ACCEPTED),
        )
    )
    assert (tries.submitted, tries.entries, tries.ranked) == (3, ("b", "c"), "b")
    assert tries.unranked == ("c",)
    assert tries.seeds == (0, 2, 4)


def test_a_try_that_was_declared_before_any_was_played_is_ranked() -> None:
    (tries,) = collect_team_attempts(
        _history(("a", EntryState.ACCEPTED), ("b", EntryState.ACCEPTED, True))
    )
    assert tries.ranked == "b"


def test_a_choice_after_the_first_result_comes_too_late() -> None:
    told = (("a", EntryState.ACCEPTED), ("a", EntryState.PLAYED), ("b", EntryState.ACCEPTED, True))
    (tries,) = collect_team_attempts(_history(*told))
    assert tries.ranked == "a"


def test_withdrawing_a_bad_first_try_frees_no_place() -> None:
    told = (("a", EntryState.ACCEPTED), ("a", EntryState.PLAYED), ("a", EntryState.WITHDRAWN))
    (tries,) = collect_team_attempts(_history(*told, ("b", EntryState.ACCEPTED)))
    assert tries.ranked == "a"


def test_further_tries_keep_their_row_and_lose_their_rank() -> None:
    season = play(lineup(("Sora", "Wan", "Wan-2"), n_scenes=20), {"ada": 1.0, "bob": 0.5})
    leader, second, third = (s.name for s in rank_season_entrants(season, seed=0).creators)
    told = collect_team_attempts(
        _history((third, EntryState.ACCEPTED), (leader, EntryState.ACCEPTED))
    )
    held = rank_one_attempt_per_team(season, told, seed=0)
    assert [(s.name, s.rank) for s in held.creators] == [(second, 1), (third, 2), (leader, None)]
    assert held.creators[0].first_class
    assert not held.creators[2].first_class
    assert {(c.reviewer, c.creator) for c in held.cells} == {
        (reviewer, creator) for reviewer in ("ada", "bob") for creator in (leader, second, third)
    }


def test_a_board_of_one_team_has_one_rank() -> None:
    season = play(lineup(("Sora", "Wan"), n_scenes=10), {"ada": 1.0})
    told = collect_team_attempts(
        _history(("Wan", EntryState.ACCEPTED), ("Sora", EntryState.ACCEPTED))
    )
    held = rank_one_attempt_per_team(season, told, seed=0)
    assert [(s.name, s.rank) for s in held.creators] == [("Wan", 1), ("Sora", None)]


def test_nobodys_figures_hang_on_the_further_tries_of_a_team() -> None:
    """Ten tries of one generator must not make it ten times as important for reviewers."""
    abilities = {"ada": 1.0, "bob": 0.5, "eve": 0.8}
    season = play(lineup(("Sora", "Wan", *TRIES), n_scenes=12), abilities)
    told = collect_team_attempts(_history(*((name, EntryState.ACCEPTED) for name in TRIES)))
    alone = exclude_entrants(season, creators=TRIES[1:], reviewers=())
    held, expected = (
        rank_one_attempt_per_team(season, told, seed=0),
        rank_season_entrants(alone, seed=0),
    )
    assert held.reviewers == expected.reviewers
    assert [s for s in held.creators if s.rank is not None] == list(expected.creators)
    assert {s.name for s in held.creators if s.rank is None} == set(TRIES[1:])


def test_a_retired_creator_keeps_its_row_and_nobody_who_came_later_lacks_it() -> None:
    shown, abilities = lineup(("Old", "Sora", "Wan"), n_scenes=12), {"ada": 1.0, "new": 0.5}
    season = play(shown, abilities, never_met=[("new", "Old")])
    board = rank_one_attempt_per_team(season, (), seed=0, retired=["Old"])
    assert {s.name: s.rank is not None for s in board.reviewers} == {"ada": True, "new": True}
    assert [s.name for s in board.creators if s.rank is None] == ["Old"]
    assert isinstance(board.creators[-1].figures["fakeness"], Estimate)


def test_further_reviewers_of_a_team_change_no_creator() -> None:
    season = play(lineup(("Sora", "Wan"), n_scenes=12), {"ada": 1.0, "bob": 0.5, "bob-2": 0.6})
    reviewers = replace_kind(_history(("bob", EntryState.ACCEPTED), ("bob-2", EntryState.ACCEPTED)))
    held = rank_one_attempt_per_team(season, collect_team_attempts(reviewers), seed=0)
    alone = rank_season_entrants(
        exclude_entrants(season, creators=(), reviewers=("bob-2",)), seed=0
    )
    assert held.creators == alone.creators
    assert {s.name: s.rank for s in held.reviewers}["bob-2"] is None


def replace_kind(history: SeasonLog) -> SeasonLog:
    lines = (replace(line, event=replace(line.event, kind="reviewer")) for line in history.lines)
    return SeasonLog(lines=tuple(lines))


def test_a_further_try_takes_no_rank_from_rows_of_like_names() -> None:
    rows = ("Wan", "Wan (2.2)", "Wan-3", "Wan/image", "Wan/image+text/x")
    assert [row for row in rows if is_leaderboard_row_of_entry(row, "Wan")] == ["Wan", "Wan/image"]


def test_nobody_else_moves_where_nobody_tried_twice() -> None:
    season = play(lineup(("Sora", "Wan"), n_scenes=10), {"ada": 1.0})
    told = collect_team_attempts(_history(("Wan", EntryState.ACCEPTED)))
    assert rank_one_attempt_per_team(season, told, seed=0) == rank_season_entrants(season, seed=0)
