from decimal import Decimal
from pathlib import Path

import pytest

from unreel.core.errors import InvalidValueError, UnreadableSourceError
from unreel.core.input_files import (
    JSON_VALUES,
    parse_json,
    parse_json_object,
    read_limited_bytes,
    read_toml_file,
)


def test_a_document_is_read_up_to_its_size(tmp_path: Path) -> None:
    file = tmp_path / "recipe.json"
    file.write_bytes(b"12345")
    assert read_limited_bytes(file, most=5) == b"12345"
    with pytest.raises(UnreadableSourceError, match="larger than 4 bytes"):
        read_limited_bytes(file, most=4)
    with pytest.raises(UnreadableSourceError, match="No such file"):
        read_limited_bytes(tmp_path / "none", most=4)


@pytest.mark.parametrize("data", [b'{"a": 1}', b'\xef\xbb\xbf{"a": 1}'])
def test_an_object_is_read_with_or_without_a_mark_at_its_start(data: bytes) -> None:
    assert parse_json_object(data) == {"a": 1}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"{", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b"[" + b"1," * JSON_VALUES, "values in one document"),
    ],
)
def test_what_is_no_json_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(InvalidValueError, match=words):
        parse_json(data)


def test_toml_is_read_and_anything_else_says_what_it_should_be(tmp_path: Path) -> None:
    file = tmp_path / "prices.toml"
    file.write_text("a = 0.1")
    assert read_toml_file(file, "price table", parse_float=Decimal) == {"a": Decimal("0.1")}
    file.write_text("not toml")
    with pytest.raises(UnreadableSourceError, match=r"no price table .* Write prices"):
        read_toml_file(file, "price table", remedy="Write prices")
    file.write_text(".".join("a" * 300) + " = 1")
    with pytest.raises(UnreadableSourceError, match="more than 200 parts"):
        read_toml_file(file, "recipe")
