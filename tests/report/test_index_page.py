"""The index page of several reviewed clips."""

from dataclasses import replace
from pathlib import Path

import pytest

from report.reviewed import DRAWN, MADE_AT, NO_MANIFEST, review_with, trace_text
from synthesise import ClipRecipe, synthesise
from unreel.core.failure import Failure, FailureReason
from unreel.evaluation.review import Review
from unreel.report.review.file_origin import build_file_origin_checks
from unreel.report.review.index_page import (
    ReviewIndexPageClip,
    ReviewIndexPageNotes,
    build_failed_index_page_clip,
    build_index_page_clip,
    format_attention_count,
    write_review_index_page,
)
from unreel.report.review.provenance import FileOriginCheck
from unreel.report.review.review_result import classify_attention

FAKE = trace_text((0, 0, 96, 64), start_s=0.25)
NAMED = replace(DRAWN, hint="The words \u201cVeo la lluvia\u201d can be read.")
MARKED = replace(DRAWN, claim="The words \u201cSora\u201d can be read.")
LOST = Failure(FailureReason.UNDECODABLE, "no frame")


@pytest.fixture(scope="module")
def ball(tmp_path_factory) -> Path:
    file = tmp_path_factory.mktemp("clips") / "ball.mp4"
    file.write_bytes(synthesise(ClipRecipe(n_frames=8)))
    return file


def classify(review: Review, checks: FileOriginCheck = DRAWN) -> str:
    return classify_attention(
        review,
        build_file_origin_checks(review.clip.facts, watermarks=checks, provenance=NO_MANIFEST),
    )


def said(ball: Path, *texts: str) -> Review:
    return review_with(ball, {f"m/{n}": {"trace": text} for n, text in enumerate(texts)})


@pytest.mark.parametrize(
    ("texts", "marks", "attention"),
    [
        ((FAKE, "REAL"), DRAWN, "disagreement"),
        (("REAL", "REAL"), MARKED, "disagreement"),
        (("REAL", "REAL"), NAMED, "named"),
        ((FAKE, "REAL", "hm"), DRAWN, "disagreement"),
        (("REAL", "hm"), DRAWN, "failure"),
        ((FAKE, "I'm sorry, I can't help."), DRAWN, "failure"),
        ((FAKE, FAKE), DRAWN, "generated"),
        (("REAL", "REAL"), DRAWN, "none"),
    ],
)
def test_a_clip_needs_a_look_for_a_reason(ball, texts, marks, attention) -> None:
    assert classify(said(ball, *texts), marks) == attention


def test_the_sentence_is_right_where_all_look_generated_and_where_none_does(ball) -> None:
    def entries(*kinds: str) -> list[ReviewIndexPageClip]:
        return [ReviewIndexPageClip(file=ball, attention=kind, sentence="") for kind in kinds]  # type: ignore[arg-type]

    assert (
        format_attention_count(entries("generated", "generated"))
        == "2 of 2 clips need attention first."
    )
    assert (
        format_attention_count(entries("failure", "none")) == "1 of 2 clips needs attention first."
    )
    assert format_attention_count(entries("none", "none")).startswith(
        "None of 2 clips needs attention: "
    )


def test_the_index_is_ordered_and_names_are_harmless(ball, tmp_path) -> None:
    hostile = Path("<script>alert(1)</script>\x1b[31m.mp4")
    entries = [
        ReviewIndexPageClip(file=Path("in/a.mp4"), attention="none", sentence="S0"),
        build_failed_index_page_clip(hostile, LOST),
        ReviewIndexPageClip(
            file=Path("in/sub/a.mp4"), attention="generated", sentence="S2", folder="3-\u00e9 x"
        ),
        ReviewIndexPageClip(file=Path("in/b.mp4"), attention="disagreement", sentence="S3"),
    ]
    notes = ReviewIndexPageNotes(made_at=MADE_AT, n_skipped_links=2, n_left=1)
    html = write_review_index_page(entries, tmp_path, notes).read_text(encoding="utf-8")
    places = [html.index(words) for words in ("S3", "Not reviewed: no frame.", "S2", "S0")]
    assert places == sorted(places)
    assert "<script>alert" not in html
    assert "\x1b" not in html
    for words in (
        "3 of 4 clips need attention first.",
        "in/sub/a.mp4",
        ">in/a.mp4<",
        ">b.mp4<",
        'href="3-%C3%A9%20x/evidence.html"',
        "2 symbolic links were skipped.",
        "1 more clip was not reviewed.",
    ):
        assert words in html, words


def test_an_entry_shows_a_frame_and_leads_to_its_pdf(ball, tmp_path) -> None:
    review = said(ball, FAKE, "REAL")
    origin = build_file_origin_checks(review.clip.facts, watermarks=MARKED, provenance=NO_MANIFEST)
    entry = build_index_page_clip(review, origin, folder="001-ball", has_pdf=True)
    html = write_review_index_page(
        [entry], tmp_path, ReviewIndexPageNotes(made_at=MADE_AT)
    ).read_text(encoding="utf-8")
    assert "data:image/jpeg;base64," in html
    assert 'href="001-ball/evidence.pdf"' in html
    assert "1 of 2 AI models says this clip looks AI-generated, from 0.25 s" in html
    assert "can be read." in html


def test_the_index_has_no_barriers(ball, tmp_path, watched) -> None:
    entries = [
        ReviewIndexPageClip(
            file=ball, attention="generated", sentence="It looks so.", folder="001-ball"
        ),
        build_failed_index_page_clip(ball, LOST),
    ]
    watched.open(
        write_review_index_page(
            entries, tmp_path, ReviewIndexPageNotes(made_at=MADE_AT, note="A note.")
        )
    )
    assert watched.violations() == []
    assert watched.complaints == []
