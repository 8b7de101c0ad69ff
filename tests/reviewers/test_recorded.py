"""Recorded answers stay in their file and are looked up when they are asked for."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from unreel.benchmarks.imported_answers import NAME_COLUMNS, ImportedAnswer, read_answer_file
from unreel.core.answer import Reply
from unreel.core.errors import UnreadableSourceError
from unreel.core.failure import Failure, FailureReason
from unreel.core.question import Instrument
from unreel.reviewers.recorded import open_recorded_reviewer


def write(file: Path, *rows: dict[str, Any]) -> Path:
    file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return file


def file_of(sheet: Any) -> str:
    return Path(sheet.inputs[0].clip.location).name


def test_two_answers_to_one_question_are_refused(tmp_path: Path, make_sheet: Any) -> None:
    sheet = make_sheet(1)
    lines = [{"question": sheet.key, "text": text} for text in ("first", "second")]
    other = {"clip": "grünes Boot.mp4", "text": "naïve"}
    with pytest.raises(UnreadableSourceError, match="two answers about"):
        open_recorded_reviewer(write(tmp_path / "a.jsonl", other, *lines), name="r")
    (tmp_path / "a.csv").write_text("clip,text\nx,1\nx,2\n")
    with pytest.raises(UnreadableSourceError, match="two answers about 'x'"):
        open_recorded_reviewer(tmp_path / "a.csv", name="r")


@pytest.mark.parametrize("column", NAME_COLUMNS)
@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl"])
def test_a_file_that_score_takes_is_replayed(
    tmp_path: Path, make_sheet: Any, column: str, ending: str
) -> None:
    sheet = make_sheet(1)
    file = tmp_path / f"a.{ending}"
    mark = {"csv": ",", "tsv": "\t"}.get(ending)
    if mark:
        file.write_text(f"{column}{mark}text\n{file_of(sheet)}{mark}yes\nother{mark}no\n")
    else:
        write(file, {column: file_of(sheet), "text": "yes"}, {column: "other", "text": "no"})
    assert asyncio.run(open_recorded_reviewer(file, name="r").answer(sheet)) == Reply(text="yes")


def test_an_answer_goes_by_what_the_benchmark_calls_its_clip(
    tmp_path: Path, make_sheet: Any
) -> None:
    lines = [{"name": "the boat", "text": "yes"}, {"name": "street/b.mp4", "text": "no"}]
    reviewer = open_recorded_reviewer(write(tmp_path / "a.jsonl", *lines), name="r")
    sheet = make_sheet(1)
    assert asyncio.run(reviewer.answer(replace(sheet, name="the boat"))) == Reply(text="yes")
    (exhibit,) = sheet.inputs
    lies = replace(exhibit, clip=replace(exhibit.clip, location="/somewhere/street/b.mp4"))
    assert asyncio.run(reviewer.answer(replace(sheet, inputs=(lies,)))) == Reply(text="no")


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"failure": "refused", "detail": "no"}, FailureReason.REFUSED),
        ({"failure": "rate-limited: 429"}, FailureReason.RATE_LIMITED),
        ({"failure": "it fell over"}, FailureReason.UNSTATED),
        ({"text": " "}, FailureReason.EMPTY_REPLY),
    ],
)
def test_what_is_no_answer_is_the_failure_that_score_counts(
    tmp_path: Path, make_sheet: Any, row: dict[str, str], reason: FailureReason
) -> None:
    sheet = make_sheet(1)
    file = write(tmp_path / "a.jsonl", {"clip": file_of(sheet), **row})
    replayed = asyncio.run(open_recorded_reviewer(file, name="r").answer(sheet))
    (given,) = read_answer_file(file)
    assert isinstance(given, ImportedAnswer)
    assert replayed == given.outcome
    assert isinstance(replayed, Failure)
    assert replayed.reason is reason


@pytest.mark.parametrize("handle", [lambda sheet: sheet.inputs[0].clip.id, file_of])
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
    reviewer = open_recorded_reviewer(write(tmp_path / "a.jsonl", *lines), name="r")
    assert asyncio.run(reviewer.answer(sheet)) == Reply(text="this one")
    elsewhere = replace(sheet, instrument=Instrument("third", 1))
    assert asyncio.run(reviewer.answer(elsewhere)) == Reply(text="any other")


@pytest.mark.parametrize("change", [Path.unlink, lambda file: file.write_text("short")])
def test_a_recording_that_changes_underway_fails_the_question(
    tmp_path: Path, make_sheet: Any, change: Any
) -> None:
    sheet = make_sheet(1)
    file = write(
        tmp_path / "a.jsonl", {"clip": "x", "text": "x"}, {"question": sheet.key, "text": "y"}
    )
    reviewer = open_recorded_reviewer(file, name="r")
    change(file)
    outcome = asyncio.run(reviewer.answer(sheet))
    assert isinstance(outcome, Failure)
    assert "changed" in outcome.detail
