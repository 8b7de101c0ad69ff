"""Recorded answers stay in their file and are looked up when they are asked for."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from unreel.core.answer import Reply
from unreel.core.errors import UnreadableSourceError
from unreel.core.failure import Failure, FailureReason
from unreel.reviewers.recorded import read_recorded


def write(file: Path, *rows: dict[str, Any]) -> Path:
    file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return file


def test_the_last_line_of_a_handle_counts(tmp_path: Path, make_sheet: Any) -> None:
    sheet = make_sheet(1)
    lines = [{"question": sheet.key, "text": text} for text in ("first", "second")]
    other = {"clip": "grünes Boot.mp4", "text": "naïve"}
    reviewer = read_recorded(write(tmp_path / "a.jsonl", other, *lines, other), name="r")
    assert asyncio.run(reviewer.answer(sheet)) == Reply(text="second")


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
