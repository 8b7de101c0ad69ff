"""What an evidence page holds, and what is written beside it."""

import io
import json
import os
import re
import stat
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from pages.specs import read_spec
from report.reviewed import review_with, trace_text, write
from synthesise import ClipRecipe, synthesise
from unreel.core.answer import Reply, Usage
from unreel.core.errors import UnsafeTargetError
from unreel.core.failure import Failure, FailureReason
from unreel.core.safe_text import sanitise_line, sanitise_lines
from unreel.media.overlay import NARROWEST
from unreel.pages.playable_clip import INLINE_BYTES
from unreel.report.review.drawn_findings import build_finding_tracks, build_findings_overlay
from unreel.report.review.opinion_text import compute_reviewer_agreements, get_opinion_colour

BALL = ClipRecipe(n_frames=24, seed=3)
GENERATED = {"trace": trace_text((0, 0, 96, 64), start_s=0.5), "realism": "<answer>2</answer>"}


@pytest.fixture(scope="module")
def ball(tmp_path_factory) -> Path:
    file = tmp_path_factory.mktemp("clips") / "ball.mp4"
    file.write_bytes(synthesise(BALL))
    return file


def spec_of(page: Path) -> dict:
    found = re.search(r'id="player-spec">(.*?)</script>', page.read_text(encoding="utf-8"))
    assert found is not None
    spec = json.loads(found[1])
    read_spec(spec)
    return spec


def test_the_page_stands_alone(ball, tmp_path) -> None:
    evidence = write(review_with(ball, {"recorded:one": GENERATED}), tmp_path)
    html = evidence.page.read_text(encoding="utf-8")
    written = sorted(path.name for path in tmp_path.iterdir())
    assert written == ["annotated.mp4", "evidence.html", "result.json", "stills"]
    stills = {f"stills/{path.name}" for path in (tmp_path / "stills").iterdir()}
    assert len(stills) == 2
    links = set(re.findall(r'(?:src|href)="([^"#]*)"', html))
    beside = {"annotated.mp4", "result.json", *stills}
    assert {link.partition(":")[0] for link in links} <= {"data", *beside, ""}
    assert "not forensic proof" in html


def test_the_page_tells_what_was_sent_and_what_came_back(ball, tmp_path) -> None:
    review = review_with(ball, {"recorded:one": GENERATED})
    answered = Reply(
        text=GENERATED["trace"],
        latency_us=1_500_000,
        usage=Usage(input_tokens=900, output_tokens=40),
    )
    first = replace(review.opinions[0], outcome=answered)
    html = write(replace(review, opinions=(first, *review.opinions[1:])), tmp_path).page.read_text()
    for told in ("1.50 s", "900 in, 40 out", first.key, "sampling=uniform-4", "Decide whether"):
        assert told in html
    shown_us = spec_of(tmp_path / "evidence.html")["shown_us"]
    assert shown_us == [round(index * 1_000_000 / 24) for index in (3, 9, 15, 21)]


def test_the_player_gets_boxes_in_parts_of_the_frame(ball, tmp_path) -> None:
    said = {"recorded:one": GENERATED, "recorded:two": {"trace": "REAL"}}
    spec = spec_of(write(review_with(ball, said), tmp_path).page)
    assert (spec["width"], spec["height"], spec["duration_us"]) == (192, 128, 1_000_000)
    assert len(spec["instants"]) == 24
    one, two = spec["tracks"]
    assert one["traces"][0]["start_us"] == 500_000
    assert one["traces"][0]["end_us"] is None
    assert one["traces"][0]["boxes"] == [{"at_us": 500_000, "x0": 0, "y0": 0, "x1": 0.5, "y1": 0.5}]
    assert two["traces"] == []


def test_the_page_opens_with_the_sentence_then_who_then_the_file(ball, tmp_path) -> None:
    said = {"recorded:one": GENERATED, "recorded:two": {"trace": "REAL"}}
    html = write(review_with(ball, said), tmp_path).page.read_text(encoding="utf-8")
    told = [
        "<h1>1 of 2 reviewers says this clip looks AI-generated, from 0.50\u00a0s; the other says it looks real.</h1>",
        "Verdicts",
        "Measured accuracy",
        "not known.",
        "Findings in the file itself",
        "Visible marks",
        "Signs of re-encoding",
        '<div id="player">',
        "it bends",
    ]
    places = [html.index(words) for words in told]
    assert places == sorted(places)
    assert "@1" not in html[: html.index("<script")]


def test_the_player_opens_at_the_first_onset(ball, tmp_path) -> None:
    later = {"trace": trace_text((0, 0, 96, 64), start_s=0.75)}
    said = {"recorded:late": later, "recorded:one": GENERATED, "recorded:two": {"trace": "REAL"}}
    assert spec_of(write(review_with(ball, said), tmp_path).page)["opens_us"] == 500_000
    nobody = {"recorded:two": {"trace": "REAL"}}
    assert spec_of(write(review_with(ball, nobody), tmp_path).page)["opens_us"] is None


def test_a_reviewer_that_never_answered_is_a_failure_on_its_line(ball, tmp_path) -> None:
    said = {"one": {"trace": "REAL"}, "two": {"trace": "zq"}, "three": {"trace": "FAKE"}}
    review = review_with(ball, said)
    lost = Failure(FailureReason.RATE_LIMITED, "status 429")
    silent = replace(review.opinions[2], outcome=lost, verdict=None)
    page = write(replace(review, opinions=(*review.opinions[:2], silent)), tmp_path).page
    real, unread, gone = spec_of(page)["tracks"]
    assert (real["note"], real["failed"]) == ("calls it real", False)
    assert unread["failed"]
    assert "could not be read" in unread["note"]
    assert gone["failed"]
    assert "rate-limited: status 429" in gone["note"]
    assert "marks nothing" not in page.read_text(encoding="utf-8")


def test_the_result_tells_in_fields_what_the_page_tells(ball, tmp_path) -> None:
    said = {"recorded:one": GENERATED, "recorded:two": {"trace": "REAL"}}
    review = review_with(ball, said)
    evidence = write(review, tmp_path, note="A note.")
    result = json.loads(evidence.result.read_text(encoding="utf-8"))
    assert (result["form"], result["version"]) == ("unreel-review", 1)
    assert result["note"] == "A note."
    assert result["summary"] == [
        "1 of 2 reviewers says this clip looks AI-generated, from 0.50 s; the other says it looks real."
    ]
    assert result["clip"] == review.clip.id
    first = result["opinions"][0]
    assert (first["verdict"]["start_us"], first["start_s"]) == (500_000, 0.5)
    assert first["reply"]["text"] == GENERATED["trace"]
    assert [frame["seconds"] for frame in first["shown"]] == [0.125, 0.375, 0.625, 0.875]
    assert first["record"] == "not known"
    assert [check["name"] for check in result["checks"]][:2] == [
        "Visible marks",
        "Content Credentials",
    ]
    assert (result["evidence"]["page"], result["evidence"]["annotated"]) == (
        "evidence.html",
        "annotated.mp4",
    )
    assert result["evidence"]["stills"][0]["start_us"] == 500_000


def test_a_time_past_the_end_stands_at_the_end(ball, tmp_path) -> None:
    said = {"recorded:one": {"trace": trace_text((0, 0, 96, 64), start_s=30)}}
    review = review_with(ball, said)
    evidence = write(review, tmp_path)
    assert spec_of(evidence.page)["tracks"][0]["traces"][0]["start_us"] == 900_000
    assert "30.00 s" in evidence.page.read_text(encoding="utf-8")


def test_the_annotated_copy_has_every_frame_and_the_box(ball, tmp_path) -> None:
    said = {"recorded:one": {"trace": trace_text((48, 32, 144, 96), start_s=0.5)}}
    evidence = write(review_with(ball, said), tmp_path)
    av = pytest.importorskip("av")
    with av.open(io.BytesIO(evidence.annotated.read_bytes())) as clip:
        stream = clip.streams.video[0]
        frames = list(clip.decode(stream))
        instants = [Fraction(frame.pts) * stream.time_base for frame in frames]
    assert len(frames) == 24
    assert instants[12] == pytest.approx(0.5, abs=1e-4)
    left = (NARROWEST - BALL.width) // 2
    before, after = (frames[i].to_ndarray(format="rgb24")[:, left:].astype(int) for i in (11, 12))
    edge = np.abs(after[36:92, 44:50] - (255, 99, 72)).sum(axis=-1).min()
    assert edge < 150
    assert np.abs(before[36:92, 44:50] - (255, 99, 72)).sum(axis=-1).min() > edge


def test_everybody_has_a_lane_on_the_copy_whatever_it_said(ball) -> None:
    said = {
        "one": {"trace": trace_text((48, 32, 144, 96), start_s=0.5)},
        "two": {"trace": "REAL", "realism": "<answer>4</answer>"},
        "three": {"trace": "zq zq"},
        "four": {"trace": "FAKE"},
    }
    review = review_with(ball, said)
    tracks = build_finding_tracks(review.opinions, (), duration_us=1_000_000)
    drawn = build_findings_overlay(review, tracks, duration_us=1_000_000)
    one, two, three, four = drawn.lanes
    assert one.text.startswith("one: generated, from 0.50 s; no answer (not-recorded")
    assert one.text.endswith(" it bends")
    assert [mark.ends for mark in one.traces] == [False]
    assert two.text == "two: real; realism 4 of 5 (good)."
    assert two.traces == ()
    assert "no verdict (the answer could not be read" in three.text
    assert "four: generated, no time given" in four.text
    assert len({lane.colour for lane in drawn.lanes}) == 4
    assert "not forensic proof" in drawn.notes[0]


def test_nothing_of_an_earlier_review_stays_beside_a_new_page(ball, tmp_path) -> None:
    (tmp_path / "annotated.mp4").write_bytes(b"old")
    review = review_with(ball, {"recorded:one": GENERATED})
    gone = replace(review.clip, location=str(tmp_path / "gone.mp4"))
    facts = replace(gone.facts, size_bytes=INLINE_BYTES + 1, container="avi")
    evidence = write(replace(review, clip=replace(gone, facts=facts)), tmp_path)
    assert isinstance(evidence.annotated, Failure)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["evidence.html", "result.json"]
    html = evidence.page.read_text(encoding="utf-8")
    assert "No annotated copy was made: not-a-file" in html


def test_a_clip_is_never_written_over_by_its_own_copy(ball, tmp_path) -> None:
    source = tmp_path / "annotated.mp4"
    source.write_bytes(ball.read_bytes())
    with pytest.raises(UnsafeTargetError, match="is the clip itself"):
        write(review_with(source, {"recorded:one": GENERATED}), tmp_path)
    assert source.read_bytes() == ball.read_bytes()


def test_who_stops_the_drawing_has_the_page_all_the_same(ball, tmp_path) -> None:
    def stop(_n_frames: int) -> None:
        raise KeyboardInterrupt

    (tmp_path / "annotated.mp4").write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt):
        write(review_with(ball, {"recorded:one": GENERATED}), tmp_path, on_frames=stop)
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == ["evidence.html", "result.json", "stills"]
    html = (tmp_path / "evidence.html").read_text(encoding="utf-8")
    assert (
        "stopped: the copy was not finished when this page was written. Run the same command again."
        in html
    )


def test_no_answer_and_nonsense_are_told_as_such(ball) -> None:
    review = review_with(ball, {"one": {"trace": "zq zq"}, "two": {"trace": "FAKE"}})
    nonsense, bare = review.opinions
    assert (get_opinion_colour(nonsense), nonsense.headline) == ("failed", "no verdict")
    assert "could not be read" in nonsense.problem
    assert bare.details[0] == ("from", "not given (missing)")
    lost = replace(bare, outcome=Failure(FailureReason.RATE_LIMITED, "status 429"), verdict=None)
    assert (get_opinion_colour(lost), lost.headline) == ("failed", "no answer")
    assert "rate-limited" in lost.problem
    assert bare.problem is None


def test_agreement_counts_heads_and_compares_places(ball) -> None:
    said = {
        "one": {"trace": trace_text((0, 0, 96, 128), start_s=0.25)},
        "two": {"trace": trace_text((0, 0, 192, 128), start_s=0.75)},
        "three": {"trace": "REAL"},
        "four": {"trace": "who knows"},
    }
    (found,) = compute_reviewer_agreements(review_with(ball, said).opinions)
    assert found.said == {"generated": 2, "real": 1}
    assert found.n_silent == 1
    assert found.overlaps == (0.5,)
    assert found.apart_us == (500_000,)
    assert str(found) == (
        "trace: generated by 2 of 4, real by 1 of 4, no verdict by 1 of 4; boxes overlap 0.50; "
        "onsets are 0.50 s apart"
    )
    assert compute_reviewer_agreements(review_with(ball, {"one": said["one"]}).opinions) == []


def test_a_terminal_is_given_no_orders() -> None:
    said = "a\x1b[31mb\x07\u202ec\n\td\u200d"
    assert sanitise_line(said) == "a\ufffd[31mb\ufffd\ufffdc\ufffd\ufffdd\u200d"
    assert sanitise_lines(said) == "a\ufffd[31mb\ufffd\ufffdc\n\td\u200d"


def test_evidence_can_be_read_by_others(ball, tmp_path) -> None:
    before = os.umask(0o022)
    try:
        write(review_with(ball, {"recorded:one": GENERATED}), tmp_path / "out")
    finally:
        os.umask(before)
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "out").rglob("*")}
    assert (tmp_path / "out" / "stills") in modes
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o755}
    assert {mode for path, mode in modes.items() if path.is_file()} == {0o644}
