"""What a notebook shows: verdicts with their frames, figures with their intervals, and nothing that acts."""

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import unreel
from unreel.core.estimate import Coverage, Metric, Scorecard, Unmeasured
from unreel.core.question import Instrument

EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>\x1b[31m"
TAGS = {"caption", "div", "figcaption", "figure", "img", "table", "tbody", "td", "th"}
TAGS |= {"thead", "tr"}


class Page(HTMLParser):
    """The tags, attributes and text of a piece of HTML; unbalanced tags are an error."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.text = ""
        self.open: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes.update(name for name, _ in attrs)
        if tag != "img":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data + "\n"


def read_page(shown: Any) -> Page:
    """What a notebook gets of `shown`, which must be made of harmless parts."""
    page = Page(shown._repr_html_())
    assert "\x1b" not in page.text
    assert "\x1b" not in str(shown)
    assert {*page.tags} <= TAGS
    assert page.attributes <= {"alt", "scope", "src", "style"}
    return page


@pytest.fixture
def evil_clip(tmp_path: Path, clip: Path) -> Path:
    file = tmp_path / "<script>alert(1)<(script>'\".mp4"
    file.write_bytes(clip.read_bytes())
    return file


@pytest.mark.parametrize("protocol", ["trace", "realism", "reality"])
@pytest.mark.parametrize(
    "form",
    [
        "FAKE<coordinates>[9, 9, 99, 99]</coordinates><explanation>{}</explanation><answer>1</answer>",
        "REAL<think>Problem Description: {}</think><answer>2</answer>",
        "{}",
    ],
)
def test_hostile_names_and_answers_are_shown_and_do_nothing(
    protocol: str, form: str, evil_clip: Path, make_spy: Any
) -> None:
    spy = make_spy(name=f"spy {EVIL}", text=form.format(EVIL))
    found = unreel.review(evil_clip, models=spy, protocols=protocol, trusted=True)
    page = read_page(found)
    assert "<script>" in page.text
    assert f"{evil_clip.name}" in page.text
    assert "spy <script>" in page.text


def test_a_verdict_is_shown_with_frames_and_its_box(clip: Path, make_spy: Any) -> None:
    text = (
        "FAKE<coordinates>[48, 32, 96, 64]</coordinates><start_time>0.25</start_time>"
        "<explanation>It floats.</explanation>"
    )
    found = unreel.review(clip, models=make_spy(text=text), protocols="trace", trusted=True)
    page = read_page(found)
    assert page.tags.count("img") == 4
    assert "generated" in page.text
    assert "It floats." in page.text
    assert "0.25 s" in page.text
    shown = found._repr_html_()
    from_its_onset = [at for at in re.findall(r"figcaption>(\S+) s<", shown) if float(at) >= 0.25]
    place = "left:25.00%;top:25.00%;width:25.00%;height:25.00%"
    assert shown.count(place) == len(from_its_onset) == 2
    assert {*re.findall(r'src="([^,]*),', shown)} == {"data:image/jpeg;base64"}


def test_a_scorecard_is_a_table_with_intervals_and_what_was_lost() -> None:
    value = unreel.Estimate(value=50.0, low=18.76, high=81.24, n=6)
    card = Scorecard(
        instrument=Instrument("reality", 1),
        n_questions=8,
        n_answered=7,
        metrics=(
            Metric(name="pooled", value=value, coverage=Coverage(parsed=6, asked=7)),
            Metric(name=EVIL, value=Unmeasured(EVIL), coverage=Coverage(parsed=0, asked=7)),
        ),
        failures={"rate-limited": 1},
        unparsed={"label: missing": 1},
    )
    page = read_page(card)
    cells = page.text.split("\n")
    assert "reality@1: 7 of 8 questions answered" in cells
    assert cells[cells.index("pooled") :][:5] == [
        "pooled",
        "50",
        "18.76 to 81.24",
        "6",
        "6/7 parsed",
    ]
    for told in ("failed", "rate-limited", "unreadable", "label: missing", "not measured"):
        assert told in cells
    assert str(card).splitlines()[:3] == [
        "reality@1: 7 of 8 questions answered",
        "  failed: 1 rate-limited",
        "  unreadable: 1 label: missing",
    ]


def test_a_run_shows_who_was_asked_how_and_the_figures(
    films: Path, tmp_path: Path, make_spy: Any
) -> None:
    spy = make_spy(name=f"spy {EVIL}")
    run = unreel.evaluate(films, model=spy, protocol="reality", out=tmp_path / "run", trusted=True)
    page = read_page(run)
    assert "spy <script>" in page.text
    assert "sampling\nuniform-8\n" in page.text
    assert "4 of 4 questions answered" in page.text
