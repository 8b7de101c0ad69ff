"""Clips and scorecards as a notebook and a terminal show them."""

from dataclasses import replace

import pytest

from unreel.core.clip import Clip
from unreel.core.errors import UnknownNameError
from unreel.core.estimate import Coverage, Estimate, Metric, Scorecard, Unmeasured
from unreel.core.question import Instrument
from unreel.core.table_formats import build_html_table
from unreel.testing.reviewers import sample_exhibit

CARD = Scorecard(
    instrument=Instrument("reality", 1),
    n_questions=10,
    n_answered=8,
    metrics=(
        Metric(
            name="accuracy",
            value=Estimate(value=75.0, low=40.0, high=93.0, n=8),
            coverage=Coverage(parsed=8, asked=8),
        ),
        Metric(
            name="balanced",
            value=Unmeasured("no real clips"),
            coverage=Coverage(parsed=0, asked=0),
        ),
    ),
    failures={"rate-limited": 2},
    unparsed={"label: missing": 1},
)


def make_clip(*, audio: bool) -> Clip:
    clip = sample_exhibit("x").clip
    facts = clip.facts if audio else replace(clip.facts, audio=())
    return replace(clip, location="<b>clip</b>.mp4", facts=facts)


def test_a_table_shows_text_and_runs_nothing() -> None:
    page = build_html_table("<i>", ["<b>"], [["<script>", "\x1b[2Kx"]])
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "\x1b" not in page


def test_a_scorecard_shows_each_figure_with_its_doubt_and_what_is_not_scored() -> None:
    page = CARD._repr_html_()
    for shown in (
        "75",
        "40 to 93",
        "not measured",
        "no real clips",
        "rate-limited",
        "label: missing",
    ):
        assert shown in page


def test_a_scorecard_in_words_begins_with_how_much_was_answered() -> None:
    first, *rest = str(CARD).splitlines()
    assert first == "reality@1: 8 of 10 questions answered"
    assert any("75.000 [40.000, 93.000] n=8" in line for line in rest)


def test_an_unknown_figure_names_the_nearest() -> None:
    assert CARD["accuracy"] == CARD.metrics[0].value
    with pytest.raises(UnknownNameError, match="accuracy"):
        CARD["acuracy"]


def test_a_clip_tells_its_facts_and_escapes_its_name() -> None:
    assert make_clip(audio=False).size == (64, 48)
    assert "none" in make_clip(audio=False)._repr_html_()
    page = make_clip(audio=True)._repr_html_()
    assert "aac" in page
    assert "2.00 s, 50 frames" in page
    assert "<b>clip</b>" not in page
