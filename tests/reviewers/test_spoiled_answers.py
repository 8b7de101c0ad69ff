"""Files of recorded answers that somebody spoiled."""

from pathlib import Path

import pytest

from unreel.core.errors import UnreadableSourceError
from unreel.reviewers.recorded import LINE_BYTES, open_recorded_reviewer

LINES = {
    "no object": b"[]",
    "a number": b"7",
    "no JSON": b"{",
    "no UTF-8": b'{"clip": "\xff", "text": ""}',
    "half a surrogate": b'{"clip": "\\ud800", "text": ""}',
    "half a surrogate in the text": b'{"clip": "a", "text": "\\ud800"}',
    "nested without end": b'{"clip": ' + b"[" * 100_000,
    "a number without end": b'{"clip": "a", "text": "", "latency_us": ' + b"9" * 100_000 + b"}",
    "infinitely many tokens": b'{"clip": "a", "text": "", "input_tokens": Infinity}',
    "too many tokens": b'{"clip":"a","text":"","input_tokens":9223372036854775808,"output_tokens":1}',
    "negative tokens": b'{"clip": "a", "text": "", "input_tokens": -1, "output_tokens": 1}',
    "a time that is text": b'{"clip": "a", "text": "", "latency_us": "soon"}',
    "a text that is none": b'{"clip": "a", "text": {}}',
    "no clip": b'{"text": "yes"}',
    "a text and a failure": b'{"clip": "a", "text": "yes", "failure": "refused"}',
    "a line without end": b'{"clip": "a", "text": "' + b"x" * LINE_BYTES + b'"}',
    "brackets": b'{"clip": "a", "text": [' + b"[]," * 1_300_000 + b"[]]}",
}


@pytest.mark.parametrize("name", sorted(LINES))
def test_a_spoiled_line_is_refused_by_its_number(name: str, tmp_path: Path) -> None:
    file = tmp_path / "answers.jsonl"
    file.write_bytes(b'{"clip": "fine", "text": "yes"}\n' + LINES[name] + b"\n")
    with pytest.raises(UnreadableSourceError, match="line 2"):
        open_recorded_reviewer(file, name="recorded")


def test_a_sparse_file_of_six_gigabytes_is_refused_at_once(tmp_path: Path) -> None:
    with (tmp_path / "answers.jsonl").open("wb") as file:
        file.truncate(6 << 30)
    with pytest.raises(UnreadableSourceError, match="longer than"):
        open_recorded_reviewer(tmp_path / "answers.jsonl", name="recorded")
