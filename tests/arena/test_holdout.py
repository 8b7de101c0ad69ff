"""Hidden scenes and canaries: who owes its place to what it has seen before."""

import stat
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.plays import lineup, play
from unreel.arena.answers.answer_table import (
    SAID_GENERATED,
    SAID_REAL,
    SeasonAnswerTable,
    get_generated_clip_mask,
    get_real_clip_mask,
)
from unreel.arena.fairness.holdout import (
    SECRET,
    choose_canary_scenes,
    choose_hidden_scenes,
    compare_hidden_and_known_scenes,
    hash_holdout_secret,
    measure_canary_answers,
    read_or_create_holdout_secret,
)
from unreel.core.errors import InvalidValueError, UnreadableSourceError
from unreel.core.estimate import Estimate, Unmeasured

SHOWN = lineup(("Sora", "Wan"), n_scenes=100)
HIDDEN = choose_hidden_scenes(SHOWN.scenes, share=0.3, secret=b"s", season="spring")
ABILITIES = {"ada": 0.6, "bob": 0.5, "eve": 0.4}


def _truth(season: SeasonAnswerTable) -> np.ndarray:
    return np.where(get_generated_clip_mask(SHOWN)[season.clip], SAID_GENERATED, SAID_REAL)


def test_a_secret_is_made_once_and_read_by_its_owner_alone(tmp_path: Path) -> None:
    secret = read_or_create_holdout_secret(tmp_path)
    assert read_or_create_holdout_secret(tmp_path) == secret
    assert len(secret) == 32
    assert stat.S_IMODE((tmp_path / SECRET).stat().st_mode) == 0o600


def test_what_is_no_secret_is_refused(tmp_path: Path) -> None:
    (tmp_path / SECRET).write_text("not hexadecimal", encoding="utf-8")
    with pytest.raises(UnreadableSourceError, match="Put the one back"):
        read_or_create_holdout_secret(tmp_path)


def test_a_promise_holds_one_secret_alone() -> None:
    assert hash_holdout_secret(b"a") != hash_holdout_secret(b"b")


@given(
    scenes=st.lists(st.text(max_size=8), unique=True, max_size=30),
    share=st.floats(min_value=0, max_value=0.99),
)
def test_a_share_of_the_scenes_is_hidden_and_never_all(scenes: list[str], share: float) -> None:
    hidden = choose_hidden_scenes(scenes, share=share, secret=b"s", season="spring")
    assert hidden <= set(scenes)
    assert hidden == choose_hidden_scenes(scenes[::-1], share=share, secret=b"s", season="spring")
    if scenes:
        assert len(hidden) < len(scenes)
        assert abs(len(hidden) - share * len(scenes)) <= 1


def test_another_season_hides_other_scenes() -> None:
    """3 of 10 scenes twice: about 9 of 100 are hidden in both."""
    autumn = choose_hidden_scenes(SHOWN.scenes, share=0.3, secret=b"s", season="autumn")
    assert 2 <= len(HIDDEN & autumn) <= 18
    assert choose_hidden_scenes(SHOWN.scenes, share=0.3, secret=b"t", season="spring") != HIDDEN


def test_canaries_are_drawn_apart_from_hidden_scenes() -> None:
    drawn = choose_canary_scenes(SHOWN.scenes, count=30, secret=b"s", season="spring")
    assert len(drawn) == 30
    assert drawn != HIDDEN


def test_a_share_of_all_is_refused() -> None:
    with pytest.raises(InvalidValueError, match=r"Use 0\.2"):
        choose_hidden_scenes(["a"], share=1.0, secret=b"s", season="spring")


def test_who_learned_the_known_scenes_is_flagged() -> None:
    season = play(SHOWN, ABILITIES)
    known = ~np.isin(np.array(SHOWN.scenes)[SHOWN.scene[season.clip]], sorted(HIDDEN))
    eve = season.reviewer == season.reviewers.index("eve")
    said = np.where(eve & known, _truth(season), season.said).astype(np.int8)
    found = compare_hidden_and_known_scenes(replace(season, said=said), HIDDEN)
    assert [each.name for each in found if each.flagged] == ["eve"]
    gap = next(each for each in found if each.name == "eve")
    assert isinstance(gap.known, Estimate)
    assert gap.known.value == 100
    assert isinstance(gap.gap, Estimate)
    assert isinstance(gap.hidden, Estimate)
    assert gap.gap.value == pytest.approx(gap.known.value - gap.hidden.value)


def test_a_creator_tuned_to_known_scenes_is_flagged() -> None:
    season = play(SHOWN, ABILITIES)
    known = ~np.isin(np.array(SHOWN.scenes)[SHOWN.scene[season.clip]], sorted(HIDDEN))
    wan = SHOWN.creator[season.clip] == SHOWN.creators.index("Wan")
    said = np.where(wan & known, SAID_REAL, season.said).astype(np.int8)
    said = np.where(wan & ~known, SAID_GENERATED, said).astype(np.int8)
    found = compare_hidden_and_known_scenes(replace(season, said=said), HIDDEN)
    assert "Wan" in [each.name for each in found if each.flagged and each.kind == "creator"]


def test_honest_entrants_are_rarely_flagged() -> None:
    """200 seasons of 5 entrants: a flag in at most 5 of 100 of them, but for chance."""
    shown = lineup(("Sora", "Wan"), n_scenes=40)
    hidden = choose_hidden_scenes(shown.scenes, share=0.3, secret=b"s", season="spring")
    flags = sum(
        any(
            each.flagged
            for each in compare_hidden_and_known_scenes(play(shown, ABILITIES, seed=seed), hidden)
        )
        for seed in range(200)
    )
    assert flags <= 18


def test_without_hidden_scenes_there_is_no_gap() -> None:
    found = compare_hidden_and_known_scenes(play(SHOWN, ABILITIES), ())
    assert all(isinstance(each.gap, Unmeasured) and not each.flagged for each in found)


CANARIES = {
    clip: SAID_GENERATED
    for clip, filmed in zip(SHOWN.clips[:36], get_real_clip_mask(SHOWN)[:36], strict=True)
    if filmed
}


def test_who_answers_as_published_has_seen_the_labels() -> None:
    season = play(SHOWN, ABILITIES)
    trapped = np.isin(np.array(SHOWN.clips)[season.clip], sorted(CANARIES))
    eve = season.reviewer == season.reviewers.index("eve")
    published = np.where(trapped, SAID_GENERATED, _truth(season))
    said = np.where(eve, published, season.said).astype(np.int8)
    found = measure_canary_answers(replace(season, said=said), CANARIES)
    assert [each.reviewer for each in found if each.flagged] == ["eve"]


def test_who_errs_anyway_is_not_accused() -> None:
    season = play(SHOWN, ABILITIES)
    always = replace(season, said=np.full(len(season.said), SAID_GENERATED, dtype=np.int8))
    assert not any(each.flagged for each in measure_canary_answers(always, CANARIES))
    assert not any(each.flagged for each in measure_canary_answers(season, CANARIES))


def test_a_canary_whose_published_label_is_right_is_none() -> None:
    with pytest.raises(InvalidValueError, match="must be wrong"):
        measure_canary_answers(play(SHOWN, ABILITIES), dict.fromkeys(CANARIES, SAID_REAL))
