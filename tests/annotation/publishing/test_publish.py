"""A published campaign is a benchmark like any other, with everything that it was settled from."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from annotation.publishing.published import edition_of, lay_out, task_of
from opinions import rated, trace, traced
from unreel.annotation.campaign import (
    AnnotationInterface,
    PreferenceAnswer,
    ScreeningAnswer,
    VoteAnswer,
)
from unreel.annotation.publishing.publish import publish_campaign_as_benchmark
from unreel.annotation.publishing.publishable_campaign import PublishableCampaign
from unreel.annotation.quality import CampaignAgreement
from unreel.benchmarks.entry import Entry
from unreel.benchmarks.human_scores import read_human_scores
from unreel.benchmarks.loader import open_benchmark
from unreel.benchmarks.statistics import compute_benchmark_identity
from unreel.core.errors import InvalidSettingError, UnreadableSourceError
from unreel.core.estimate import Estimate, Unmeasured
from unreel.core.judgement import Label
from unreel.core.verdict import Position

NAMES = ("film-0", "veo-0", "veo-1")
MARK = traced(trace(10, 20, why="A hand melts."))
NOTHING = traced(label=Label.REAL)


def _entries(folder: Path) -> dict[str, Entry]:
    return {row.name: row for row in open_benchmark(folder) if isinstance(row, Entry)}


def _lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _traces(root: Path) -> PublishableCampaign:
    film, veo, torn = (task_of(root, name) for name in NAMES)
    return edition_of(
        root,
        AnnotationInterface.TRACE,
        {
            film: dict.fromkeys(("ann", "bob", "cho"), NOTHING),
            veo: {"ann": MARK, "bob": MARK, "cho": NOTHING},
            torn: {"ann": MARK},
        },
    )


def test_settled_clips_are_in_the_benchmark_and_the_others_are_named_with_reasons(
    tmp_path: Path,
) -> None:
    root = lay_out(tmp_path / "bench", NAMES)
    out = tmp_path / "out"
    published = publish_campaign_as_benchmark(_traces(root), out)
    found = _entries(out)
    assert set(found) == {"film-0", "veo-0"}
    assert len(found["veo-0"].traces) == 1
    assert found["film-0"].traces == ()
    assert found["veo-0"].rating is not None
    assert (out / found["veo-0"].location).read_bytes() == b"the bytes of veo-0"
    assert [str(left) for left in published.left_out] == ["veo-1: not settled: too-few-judged"]
    card = (out / "README.md").read_text(encoding="utf-8")
    assert "veo-1" in card
    assert "> # No heading of the card" in card


def test_nothing_that_was_said_is_lost(tmp_path: Path) -> None:
    root = lay_out(tmp_path / "bench", NAMES)
    edition = _traces(root)
    publish_campaign_as_benchmark(edition, tmp_path / "out", named=True)
    given = _lines(tmp_path / "out" / "annotations.jsonl")
    assert len(given) == len(edition.opinions)
    settled = {tuple(line["clips"]): line for line in _lines(tmp_path / "out" / "consensus.jsonl")}
    assert settled[("veo-0",)]["support"] == ["ann", "bob"]
    assert [each["annotator"] for each in settled[("veo-0",)]["dissent"]] == ["cho"]
    assert settled[("veo-1",)]["why"] == "too-few-judged"


def test_people_stand_under_numbers_unless_their_names_are_asked_for(tmp_path: Path) -> None:
    root = lay_out(tmp_path / "bench", NAMES)
    publish_campaign_as_benchmark(_traces(root), tmp_path / "out")
    written = "".join(
        path.read_text(encoding="utf-8")
        for path in (tmp_path / "out").rglob("*")
        if path.is_file() and path.suffix != ".mp4"
    )
    for name in ("ann", "bob", "cho"):
        assert f'"{name}"' not in written
        assert f" {name} " not in written
    assert "annotator-1" in written


def test_people_are_measured_on_the_very_benchmark_that_was_written(tmp_path: Path) -> None:
    root = lay_out(tmp_path / "bench", NAMES)
    publish_campaign_as_benchmark(_traces(root), tmp_path / "out")
    people = read_human_scores(tmp_path / "out")
    known = compute_benchmark_identity(open_benchmark(tmp_path / "out"))
    assert people is not None
    assert known is not None
    assert people.fingerprint == known.fingerprint
    assert {row.protocol for row in people.rows} >= {"trace", "reality"}


def test_a_file_that_was_changed_since_is_not_what_people_judged(tmp_path: Path) -> None:
    root = lay_out(tmp_path / "bench", NAMES)
    edition = _traces(root)
    (root / "veo-0.mp4").write_bytes(b"another film")
    (root / "film-0.mp4").unlink()
    with pytest.raises(UnreadableSourceError, match="no clip is settled"):
        publish_campaign_as_benchmark(edition, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    (root / "film-0.mp4").write_bytes(b"the bytes of film-0")
    published = publish_campaign_as_benchmark(edition, tmp_path / "out")
    assert published.n_clips == 1
    assert "not the one that people judged" in published.left_out[0].why


def test_a_clip_that_left_the_benchmark_is_told(tmp_path: Path) -> None:
    root = lay_out(tmp_path / "bench", NAMES)
    edition = _traces(root)
    table = root / "metadata.jsonl"
    table.write_text("\n".join(table.read_text().splitlines()[:2]), encoding="utf-8")
    published = publish_campaign_as_benchmark(edition, tmp_path / "out")
    assert [left.why for left in published.left_out] == ["not in the benchmark any more"]


def test_a_folder_that_holds_something_is_left_alone(tmp_path: Path) -> None:
    root = lay_out(tmp_path / "bench", NAMES)
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine.txt").write_text("mine")
    with pytest.raises(UnreadableSourceError, match="Name a new one"):
        publish_campaign_as_benchmark(_traces(root), out)
    assert [path.name for path in out.iterdir()] == ["mine.txt"]


def test_what_a_killed_publishing_left_is_taken_away(tmp_path: Path) -> None:
    root = lay_out(tmp_path / "bench", NAMES)
    left = tmp_path / ".unreel-publishing-out"
    left.mkdir()
    (left / "metadata.jsonl").write_text("{}")
    publish_campaign_as_benchmark(_traces(root), tmp_path / "out")
    assert not left.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bench", "out"]


def test_scores_and_votes_come_with_what_they_were_settled_from(tmp_path: Path) -> None:
    root = lay_out(tmp_path / "bench", NAMES)
    veo = task_of(root, "veo-0")
    scores = {"ann": rated(2, "It floats."), "bob": rated(2, "It hovers."), "cho": rated(4)}
    publish_campaign_as_benchmark(
        edition_of(root, AnnotationInterface.REALISM, {veo: scores}), tmp_path / "scores"
    )
    entry = _entries(tmp_path / "scores")["veo-0"]
    assert entry.rating is not None
    assert entry.rating.score == 2
    assert sorted(rating.score for rating in entry.ratings) == [2, 2, 4]
    votes = dict.fromkeys(("ann", "bob", "cho"), VoteAnswer(label=Label.REAL))
    publish_campaign_as_benchmark(
        edition_of(root, AnnotationInterface.REALITY, {veo: votes}), tmp_path / "votes"
    )
    entry = _entries(tmp_path / "votes")["veo-0"]
    assert entry.label is Label.GENERATED
    assert len(entry.votes) == 3


def test_undecided_clips_are_kept_on_request_with_what_their_makers_say(tmp_path: Path) -> None:
    root = lay_out(tmp_path / "bench", NAMES)
    real, fake = VoteAnswer(label=Label.REAL), VoteAnswer(label=Label.GENERATED)
    said = {
        task_of(root, "film-0"): {"ann": real, "bob": real},
        task_of(root, "veo-0"): {"ann": real, "bob": fake},
    }
    edition = edition_of(root, AnnotationInterface.REALITY, said, task_of(root, "veo-1"))
    assert publish_campaign_as_benchmark(edition, tmp_path / "without").n_clips == 1
    assert "undecided" not in _lines(tmp_path / "without" / "metadata.jsonl")[0]
    published = publish_campaign_as_benchmark(
        replace(edition, keep_undecided=True), tmp_path / "out"
    )
    assert (published.n_clips, published.n_undecided, published.left_out) == (3, 2, ())
    rows = {row["name"]: row["undecided"] for row in _lines(tmp_path / "out" / "metadata.jsonl")}
    assert rows == {"film-0": False, "veo-0": True, "veo-1": True}
    found = _entries(tmp_path / "out")
    assert (found["veo-0"].label, len(found["veo-0"].votes)) == (Label.GENERATED, 2)
    assert "kept without a decision" in (tmp_path / "out" / "README.md").read_text()
    for interface in (
        AnnotationInterface.TRACE,
        AnnotationInterface.REALISM,
        AnnotationInterface.SCREENING,
    ):
        with pytest.raises(InvalidSettingError, match="the ground truth is the consensus"):
            replace(edition_of(root, interface, {}), keep_undecided=True)


def test_a_screened_set_holds_what_people_keep(tmp_path: Path) -> None:
    root = lay_out(tmp_path / "bench", NAMES)
    keep, drop = ScreeningAnswer(keep=True), ScreeningAnswer(keep=False)
    said = {
        task_of(root, "film-0"): {"ann": keep, "bob": keep},
        task_of(root, "veo-0"): {"ann": drop, "bob": drop},
    }
    edition = edition_of(root, AnnotationInterface.SCREENING, said, task_of(root, "veo-1"))
    published = publish_campaign_as_benchmark(edition, tmp_path / "out")
    assert set(_entries(tmp_path / "out")) == {"film-0"}
    assert [left.why for left in published.left_out] == ["annotators removed it", "not judged yet"]
    assert published.people == ()


def test_the_clips_of_pairs_are_published_with_the_preferences_beside_them(tmp_path: Path) -> None:
    root = lay_out(tmp_path / "bench", NAMES)
    first = dict.fromkeys(("ann", "bob"), PreferenceAnswer(better=Position.FIRST))
    pairs = {task_of(root, "film-0", "veo-0"): first, task_of(root, "veo-0", "veo-1"): first}
    publish_campaign_as_benchmark(
        edition_of(root, AnnotationInterface.PREFERENCE, pairs), tmp_path / "out"
    )
    assert set(_entries(tmp_path / "out")) == set(NAMES)
    assert [line["value"]["better"] for line in _lines(tmp_path / "out" / "consensus.jsonl")] == [
        "first",
        "first",
    ]


def test_the_card_tells_agreement_with_its_doubt_and_reasons_for_none(tmp_path: Path) -> None:
    root = lay_out(tmp_path / "bench", NAMES)
    agreement = {
        "alpha of labels": Estimate(value=0.5, low=0.2, high=0.7, n=9, n_clusters=3),
        "box IoU | of <b>": Unmeasured("nobody marked the same"),
    }
    publish_campaign_as_benchmark(
        replace(_traces(root), agreement=CampaignAgreement(overall=agreement)), tmp_path / "out"
    )
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert "| alpha of labels | 0.500 | 0.200 to 0.700 | 9 |" in card
    assert r"box IoU \| of \<b\>" in card
    assert "rest on fewer" in card
