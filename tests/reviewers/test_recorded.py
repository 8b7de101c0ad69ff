"""Recorded answers stay in their file and are looked up when they are asked for."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from unreel.core.answer import Reply
from unreel.core.errors import UnreadableSourceError
from unreel.core.failure import Failure, FailureReason
from unreel.core.question import Instrument
from unreel.reviewers.recorded import read_recorded


def write(file: Path, *rows: dict[str, Any]) -> Path:
    file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return file


def file_of(sheet: Any) -> str:
    return Path(sheet.exhibits[0].clip.location).name


def test_the_last_line_of_a_handle_counts(tmp_path: Path, make_sheet: Any) -> None:
    sheet = make_sheet(1)
    lines = [{"question": sheet.key, "text": text} for text in ("first", "second")]
    other = {"clip": "grünes Boot.mp4", "text": "naïve"}
    reviewer = read_recorded(write(tmp_path / "a.jsonl", other, *lines, other), name="r")
    assert asyncio.run(reviewer.answer(sheet)) == Reply(text="second")


@pytest.mark.parametrize("handle", [lambda sheet: sheet.exhibits[0].clip.id, file_of])
def test_a_line_that_names_its_protocol_answers_that_one_alone(
    tmp_path: Path, make_sheet: Any, handle: Any
) -> None:
    sheet = make_sheet(1)
    clip = handle(sheet)
    lines = [
        {"clip": clip, "protocol": sheet.instrument.protocol, "text": "this one"},
        {"clip": clip, "protocol": "another", "text": "not this one"},
        {"clip": clip, "text": "any other"},
    ]
    reviewer = read_recorded(write(tmp_path / "a.jsonl", *lines), name="r")
    assert asyncio.run(reviewer.answer(sheet)) == Reply(text="this one")
    elsewhere = replace(sheet, instrument=Instrument("third", 1))
    assert asyncio.run(reviewer.answer(elsewhere)) == Reply(text="any other")


def test_an_empty_recording_answers_nothing(tmp_path: Path, make_sheet: Any) -> None:
    outcome = asyncio.run(read_recorded(write(tmp_path / "a"), name="r").answer(make_sheet(1)))
    assert isinstance(outcome, Failure)
    assert outcome.reason is FailureReason.NOT_RECORDED


@pytest.mark.parametrize("change", [Path.unlink, lambda file: file.write_text("short")])
def test_a_recording_that_changes_underway_fails_the_question(
    tmp_path: Path, make_sheet: Any, change: Any
) -> None:
    sheet = make_sheet(1)
    file = write(
        tmp_path / "a.jsonl", {"clip": "x", "text": "x"}, {"question": sheet.key, "text": "y"}
    )
    reviewer = read_recorded(file, name="r")
    change(file)
    outcome = asyncio.run(reviewer.answer(sheet))
    assert isinstance(outcome, Failure)
    assert "changed" in outcome.detail


def test_a_text_that_is_no_text_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(UnreadableSourceError, match="line 1"):
        read_recorded(write(tmp_path / "a", {"clip": "x", "text": 5}), name="r")
