"""People's votes: each voter, all votes and majorities, with the doubt of clips and how far people agree."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from published.recompute import read_human_counts
from unreel.benchmarks.entry import Entry, Rejected
from unreel.benchmarks.votes import VoteScores, join_votes_with_entries, score_votes
from unreel.core.clip import Generated, Real
from unreel.core.errors import UnknownNameError, UnreadableSourceError
from unreel.core.estimate import Estimate, Measured, Scorecard, Unmeasured
from unreel.core.judgement import Label, Vote

REAL, FAKE = Label.REAL, Label.GENERATED
ENTRIES = [
    Entry(name=f"r{n}", location=f"r{n}.mp4", origin=Real(), split="a") for n in range(4)
] + [
    Entry(name=f"g{n}", location=f"g{n}.mp4", origin=Generated("Wan"), split="b") for n in range(4)
]


def write(tmp_path: Path, rows: list[dict[str, Any]]) -> Path:
    path = tmp_path / "votes.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def estimate(measured: Measured) -> Estimate:
    assert isinstance(measured, Estimate), measured
    return measured


def ballots(*said: str) -> VoteScores:
    """Scores of the eight clips; each word of `said` is what one voter says of them, r or g."""
    voted = [
        (
            entry,
            tuple(Vote(f"v{v}", REAL if word[i] == "r" else FAKE) for v, word in enumerate(said)),
        )
        for i, entry in enumerate(ENTRIES)
    ]
    return score_votes(voted, seed=0)


def values(scorecard: Scorecard, *names: str) -> list[float]:
    return [estimate(scorecard[name]).value for name in names]


def test_a_vote_finds_its_clip_by_name_or_location_and_its_label_in_words(tmp_path: Path) -> None:
    rows = [
        {"clip": "r0", "voter": "ann", "label": "Real"},
        {"clip": "r0.mp4", "voter": "ben", "label": "fake"},
        {"clip": "g1", "voter": "ann", "label": "generated"},
    ]
    joined = join_votes_with_entries(ENTRIES, write(tmp_path, rows))
    said = {entry.name: votes for entry, votes in joined.ballots if votes}
    assert said == {"r0": (Vote("ann", REAL), Vote("ben", FAKE)), "g1": (Vote("ann", FAKE),)}
    assert len(joined.not_asked) == 6


def test_a_csv_of_votes_is_read_too_and_one_split_alone(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("name,voter,label\nr0,ann,real\ng0,ann,real\n", encoding="utf-8")
    joined = join_votes_with_entries(ENTRIES, path, split="b")
    assert [entry.name for entry, votes in joined.ballots if votes] == ["g0"]
    assert joined.unknown == ()
    with pytest.raises(UnknownNameError, match="Known: a, b"):
        join_votes_with_entries(ENTRIES, path, split="c")


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"name": "r1", "voter": "", "label": "real"}, "Write who voted"),
        ({"name": "r1", "voter": "ann", "label": "1"}, "Write real, generated or fake"),
        ({"name": "r1", "voter": "ann", "label": ""}, "Write real, generated or fake"),
        ({"voter": "ann", "label": "real"}, "Write it under one of name"),
        ({"name": "r0", "voter": "ann", "label": "real"}, "Keep one vote of each person"),
        ({"name": "r0.mp4", "voter": "ann", "label": "fake"}, "Keep one vote of each person"),
    ],
)
def test_a_row_that_is_no_vote_is_rejected_with_the_reason(
    tmp_path: Path, row: dict[str, Any], why: str
) -> None:
    sound = {"name": "r0", "voter": "ann", "label": "real"}
    joined = join_votes_with_entries(
        [*ENTRIES, Rejected("x", "broken")], write(tmp_path, [sound, row])
    )
    assert [rejected.name for rejected in joined.rejected][0:1] == ["x"]
    assert why in joined.rejected[1].why


def test_a_file_without_votes_says_which_columns_it_needs(tmp_path: Path) -> None:
    path = write(tmp_path, [{"name": "r0", "voter": "ann", "text": "1"}])
    with pytest.raises(UnreadableSourceError, match="Write the columns voter, label and one of"):
        join_votes_with_entries(ENTRIES, path)


def test_votes_majorities_and_persons_have_figures_of_their_own() -> None:
    scores = ballots("rrrrgggg", "rrrrgggg", "ggggrrrr")
    assert values(scores.votes, "balanced", "real-accuracy", "caught: Wan") == pytest.approx(
        [200 / 3] * 3
    )
    assert values(scores.majority, "balanced", "real-accuracy", "caught: Wan") == [100] * 3
    assert {name: values(card, "balanced") for name, card in scores.voters.items()} == {
        "v0": [100],
        "v1": [100],
        "v2": [0],
    }
    assert (scores.votes.n_questions, scores.majority.n_questions) == (24, 8)


def test_figures_by_difficulty_are_those_of_all_votes_and_of_majorities() -> None:
    voted = [
        (replace(entry, difficulty="easy" if n % 2 else "hard"), (Vote("ann", REAL),))
        for n, entry in enumerate(ENTRIES)
    ]
    scores = score_votes(voted, seed=0)
    for card in (scores.votes, scores.majority):
        assert values(card, "accuracy: difficulty=easy", "accuracy: difficulty=hard") == [50, 50]
    assert not any("difficulty" in metric.name for metric in scores.voters["ann"].metrics)


def test_a_tie_is_no_majority_and_is_counted() -> None:
    scores = ballots("rrrrgggg", "grrrgggg")
    assert scores.majority.unparsed == {"label: ambiguous": 1}
    assert estimate(scores.majority["real-accuracy"]).n == 3


def test_more_votes_on_the_same_clips_do_not_make_clips() -> None:
    once = estimate(ballots("rrgggggg").votes["real-accuracy"])
    often = estimate(ballots(*["rrgggggg"] * 20).votes["real-accuracy"])
    assert often.n == 80
    assert often.high - often.low > 0.9 * (once.high - once.low)


def widths(n_voters: int) -> tuple[float, float]:
    """Of the interval of half right votes: where people differ in skill, and where all are alike."""
    made = [
        Entry(name=f"g{n}", location=f"g{n}.mp4", origin=Generated("Wan")) for n in range(40)
    ] + ENTRIES[:1]
    differ = [[FAKE if v % 2 else REAL for v in range(n_voters)] for _ in made]
    alike = [[FAKE if (v + n) % 2 else REAL for v in range(n_voters)] for n in range(len(made))]
    found = []
    for table in (differ, alike):
        voted = [
            (entry, tuple(Vote(f"v{v}", label) for v, label in enumerate(said)))
            for entry, said in zip(made, table, strict=True)
        ]
        measured = estimate(score_votes(voted, seed=0).votes["fake-accuracy"])
        assert measured.value == 50
        found.append(measured.high - measured.low)
    return found[0], found[1]


def test_people_who_differ_make_the_figure_of_all_votes_less_sure() -> None:
    differ, alike = widths(12)
    assert differ > 3 * alike


def test_too_few_people_tell_nothing_of_others() -> None:
    differ, alike = widths(4)
    assert differ == pytest.approx(alike, abs=1)


def test_agreement_is_told_beyond_chance() -> None:
    assert estimate(ballots("rrrrgggg", "rrrrgggg").agreement).value == 1
    assert estimate(ballots("rrrrgggg", "ggggrrrr").agreement).value < 0
    assert isinstance(ballots("rrrrgggg").agreement, Unmeasured)


def test_the_votes_that_table_16_counts_give_its_scores() -> None:
    rows = read_human_counts()
    n_real, right = rows[0][1].valid, rows[0][1].said_real
    voted = [
        (
            Entry(name=f"real{n}", location=f"{n}.mp4", origin=Real()),
            (Vote("people", REAL if n < right else FAKE),),
        )
        for n in range(n_real)
    ]
    for creator, _, fake, _ in rows:
        voted += [
            (
                Entry(name=f"{creator}{n}", location="x.mp4", origin=Generated(creator)),
                (Vote("people", FAKE if n < fake.said_fake else REAL),),
            )
            for n in range(fake.valid)
        ]
    card = score_votes(voted, seed=0).majority
    for creator, _, _, score in rows:
        assert values(card, f"balanced: {creator}") == [pytest.approx(float(score))]
