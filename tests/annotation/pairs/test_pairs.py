"""Pairs as VideoRealBench takes them, pairs that tell most, and the ranking that comes of them."""

from collections import Counter
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import pytest

from unreel.annotation.campaign import (
    AnnotationTask,
    AnnotatorClipCopy,
    AnnotatorJudgement,
    PassFailAnswer,
    PreferenceAnswer,
    PrefillStudyArm,
    VoteAnswer,
)
from unreel.annotation.pairs import (
    VRB_CLIPS,
    choose_informative_pairs,
    iter_preference_wins,
    list_different_score_pairs,
    rank_clips,
    read_pair_file,
    sample_clips_by_score,
    write_pair_file,
)
from unreel.core.content_ids import compute_placeholder_clip_id
from unreel.core.errors import InvalidSettingError, InvalidValueError, UnreadableSourceError
from unreel.core.estimate import Estimate
from unreel.core.judgement import Label
from unreel.core.verdict import Position


def task(*names: str) -> AnnotationTask:
    copies = tuple(
        AnnotatorClipCopy(
            clip=compute_placeholder_clip_id(n),
            location=n,
            rate=Fraction(25),
            n_frames=9,
            width=9,
            height=9,
        )
        for n in names
    )
    return AnnotationTask(names=names, copies=copies)


def judged(annotator: str, value: object, *names: str) -> AnnotatorJudgement:
    return AnnotatorJudgement(
        annotator=annotator,
        task=task(*names),
        value=value,  # type: ignore[arg-type]
        lead_us=None,
        submitted_us=1,
        arm=PrefillStudyArm.PLAIN,
    )


def prefers(annotator: str, better: str, other: str) -> AnnotatorJudgement:
    names = sorted([better, other])
    position = Position.FIRST if names[0] == better else Position.SECOND
    return judged(annotator, PreferenceAnswer(better=position), *names)


def test_thirty_clips_of_videorealbench_give_its_345_pairs() -> None:
    scores = {f"c{number:03d}": 1 + number % 5 for number in range(100)}
    drawn = sample_clips_by_score(scores, seed=7)
    assert Counter(drawn.values()) == VRB_CLIPS
    pairs = list_different_score_pairs(drawn)
    assert len(drawn) == 30
    assert len(pairs) == len(set(pairs)) == 345
    assert all(one < other and drawn[one] != drawn[other] for one, other in pairs)
    assert drawn == sample_clips_by_score(scores, seed=7) != sample_clips_by_score(scores, seed=8)


def test_too_few_clips_of_a_score_are_told_with_another_way() -> None:
    with pytest.raises(InvalidSettingError, match="--clips all"):
        sample_clips_by_score({"a": 1, "b": 2}, seed=0)


def test_telling_pairs_ask_about_what_is_not_known_yet() -> None:
    names = ["a", "b", "c", "d"]
    wins = [("a", other) for other in ("b", "c", "d")] * 20
    chosen = choose_informative_pairs(names, wins, n=3, seed=0)
    assert sorted(chosen) == [("b", "c"), ("b", "d"), ("c", "d")]
    with pytest.raises(InvalidSettingError):
        choose_informative_pairs(["a"], [], n=1, seed=0)


def test_pairs_survive_their_file_whatever_clips_are_called(tmp_path: Path) -> None:
    pairs = [("'quoted", "b"), ("=1+1", "a,b"), ("-x", 'say "hi"'), ("@n", "two words"), ("a", "ä")]
    pairs = [tuple(sorted(pair)) for pair in pairs]  # type: ignore[misc]
    write_pair_file(tmp_path / "pairs.csv", pairs)
    assert read_pair_file(tmp_path / "pairs.csv") == pairs


@pytest.mark.parametrize(
    "text",
    ["", "first,second\n", "first,second\na,\n", "a,b\nc,d\n", "first,second\na,a\n", "\x00"],
)
def test_a_file_that_names_no_pairs_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "p.csv").write_text(text)
    with pytest.raises(UnreadableSourceError, match="first and second"):
        read_pair_file(tmp_path / "p.csv")


def test_preferences_rank_clips_with_intervals_whichever_side_was_better() -> None:
    names = [f"c{number}" for number in range(8)]  # all but every fourth prefer the lower number
    said = [
        prefers(who, *(pair if (at + int(who)) % 4 else pair[::-1]))
        for at, pair in enumerate(combinations(names, 2))
        for who in "123"
    ]
    ranking = rank_clips(said, seed=0)
    places = {clip.name: clip.place for clip in ranking.clips}
    assert (ranking.n_judgements, ranking.n_comparisons, ranking.drawn) == (84, 84, "pair")
    assert places["c0"] < places["c7"]
    strongest, *_, weakest = ranking.clips
    assert isinstance(strongest.believed, Estimate)
    assert isinstance(weakest.believed, Estimate)
    assert strongest.believed.low > weakest.believed.high
    assert isinstance(strongest.share, Estimate)
    assert 0.5 < strongest.share.value <= 1
    assert set(iter_preference_wins(said[:2])) <= {("c0", "c1"), ("c1", "c0")}


def test_one_question_is_turned_into_pairs_within_each_annotator() -> None:
    said = [
        judged("strict", PassFailAnswer(passed=name == "good"), name)
        for name in ("good", "fair", "bad")
    ]
    said += [
        judged("mild", PassFailAnswer(passed=name != "bad"), name)
        for name in ("good", "fair", "bad")
    ]
    ranking = rank_clips(said, seed=0)
    assert [clip.name for clip in ranking.clips] == ["good", "fair", "bad"]
    assert (ranking.n_comparisons, ranking.drawn) == (4, "annotator")
    assert ranking.clips[0].share.value == 1.0  # type: ignore[union-attr]


def test_what_ranks_nothing_is_refused() -> None:
    everyone_passes = [judged("a", PassFailAnswer(passed=True), name) for name in ("x", "y")]
    votes = [judged("a", VoteAnswer(label=Label.REAL), "x")]
    for said in ([], everyone_passes, votes):
        with pytest.raises(InvalidValueError):
            rank_clips(said, seed=0)
