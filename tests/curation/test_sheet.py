"""A contact sheet: what is frozen and what is left out, few of each, on a page that anybody can read."""

import json
from pathlib import Path

import pytest

from unreel.core.settings import read_environment_settings
from unreel.curation.contact_sheet import (
    ContactSheetSettings,
    sample_benchmark_clips,
    write_contact_sheet_page,
)
from unreel.curation.curation_run import run_curation
from unreel.media.access import open_media_reader

HOSTILE = '<img src=x onerror="alert(1)">\u202e'


@pytest.fixture
def frozen(footage, curation) -> Path:
    """The working folder of ten frozen clips, with three files left out."""
    job = curation({"path": str(footage)}, freeze={"version": "1.0", "shares": [3, 1, 1]})
    run_curation(job)
    folder = job.context.place.path
    lines = [
        {"name": HOSTILE, "step": "ingest", "reason": "rejected", "detail": "no <b>file</b>"},
        {
            "name": "still",
            "step": "screen",
            "reason": "motion",
            "detail": "motion 0.00 is below 5",
            "location": str(footage / "real" / "clip1.mp4"),
            "at_us": 500_000,
        },
        {"name": "far", "step": "screen", "reason": "motion", "location": "/no/such/file.mp4"},
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / "quarantine.jsonl").write_text(text)
    return folder


def write(folder: Path, *, most: int = 12, roots: tuple[Path, ...] = (), **given):
    wish = ContactSheetSettings(max_shown=most, seed=0, roots=roots)
    with open_media_reader(read_environment_settings(), trusted=True) as reader:
        return write_contact_sheet_page(folder, settings=wish, reader=reader, **given)


def test_every_split_label_and_reason_has_its_group(frozen) -> None:
    sheet = write(frozen)
    text = sheet.page.read_text()
    assert sheet.page == frozen / "contact-sheet.html"
    titles = [
        f"{split}: {label}" for split in ("train", "val", "test") for label in ("real", "gen")
    ]
    places = [text.index(title) for title in [*titles, "ingest: rejected", "screen: motion"]]
    assert places == sorted(places)
    assert text.count("data:image/jpeg;base64,") == 11
    assert (sheet.n_frozen, sheet.n_left_out, sheet.n_shown, sheet.n_unseen) == (10, 3, 13, 2)


def test_few_are_shown_by_a_seed_and_that_is_told(frozen) -> None:
    folder = frozen / "benchmark"
    one, again, other = (sample_benchmark_clips(folder, limit=1, seed=seed) for seed in (1, 1, 3))
    assert one == again
    assert [len(group.chosen) for group in one] == [1] * 6
    assert one != other
    text = write(frozen, max_shown=1).page.read_text()
    assert "1 of 3 are shown, sampled with seed 0." in text


def test_a_file_outside_the_named_folders_is_not_opened(frozen, tmp_path) -> None:
    text = write(frozen, roots=(tmp_path / "elsewhere",)).page.read_text()
    assert text.count("data:image/jpeg;base64,") == 10
    assert text.count("--allow-outside") == 2


@pytest.mark.parametrize("width", ["watched", "narrow"])
def test_the_page_is_readable_wide_and_narrow_and_runs_nothing_of_strangers(
    frozen, request, width
) -> None:
    file = write(frozen).page
    browser = request.getfixturevalue(width)
    page = browser.open(file)
    assert browser.violations() == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate("document.querySelectorAll('main script, main img[onerror]').length") == 0
    assert page.evaluate("[...document.images].every(one => one.naturalWidth > 0)")
    assert len(page.pdf()) > 10_000
