"""Recipes of curations that somebody spoiled: refused in words, soon, and without a traceback."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pace import slowness
from unreel.core.errors import InvalidSettingError, InvalidValueError, UnreadableSourceError
from unreel.curation.recipe import read_curation_recipe

REFUSALS = (UnreadableSourceError, InvalidSettingError, InvalidValueError)
SOUND = """
name = "films"
seed = 1
[[source]]
path = "films"
label = "real"
limit = 5
[split]
threshold = 0.5
shortest_s = "1/2"
[screen]
screens = { motion = {} }
[describe]
model = "openai/gpt-5"
max_tokens = 100
deadline_s = 10.0
[normalise]
width = 640
rate = "24"
[inject]
share = 0.5
categories = ["sudden-blurring"]
[freeze]
shares = [8, 1, 1]
"""
VALUES = {
    "a list": "[]",
    "an empty text": '""',
    "a long text": '"' + "x" * 5000 + '"',
    "negative": "-1",
    "beyond all measure": "9" * 400,
    "nan": "nan",
    "infinite": "inf",
    "true": "true",
    "an exponent": '"1e999999999"',
    "no fraction": '"1/0"',
    "a date": "1979-05-27",
    "a section": "{ a = 1 }",
    "deep": "[" * 3000 + "]" * 3000,
}
WHOLE: dict[str, Callable[[], bytes]] = {
    "nothing": lambda: b"",
    "no TOML": lambda: b"name = ",
    "no UTF-8": lambda: b"\xff\xfe",
    "a number without end": lambda: b"seed = " + b"9" * 100_000,
    "brackets without end": lambda: b"seed = " + b"[" * 100_000,
    "a key without end": lambda: b"a" + b".a" * 100_000 + b" = 1",
    "a megabyte": lambda: SOUND.encode() + b"#" * (1 << 20),
    "an unknown section": lambda: SOUND.encode() + b"[more]\n",
    "a thousand sources": lambda: SOUND.encode() + b'[[source]]\npath = "a"\n' * 1000,
    "an unknown column": lambda: SOUND.encode() + b'[[source]]\npath = "a"\ncolumns = {b = "c"}\n',
}


def _spoiled() -> dict[str, bytes]:
    found = {name: make() for name, make in WHOLE.items()}
    lines = SOUND.splitlines()
    for number, line in enumerate(lines):
        key, equals, _ = line.partition(" = ")
        if equals:
            for kind, value in VALUES.items():
                changed = [*lines[:number], f"{key} = {value}", *lines[number + 1 :]]
                found[f"{key} is {kind}"] = "\n".join(changed).encode()
    return found


SPOILED = _spoiled()


def test_a_spoiled_recipe_is_read_or_refused_in_words(tmp_path: Path) -> None:
    assert len(SPOILED) > 150
    refused = 0
    began_s = time.monotonic()
    for name, text in SPOILED.items():
        (tmp_path / "recipe.toml").write_bytes(text)
        try:
            read_curation_recipe(tmp_path / "recipe.toml")
        except REFUSALS:
            refused += 1
        except Exception as error:  # noqa: BLE001  the name of what was spoiled is what helps
            pytest.fail(f"{name}: {type(error).__name__}: {str(error)[:200]}")
    assert refused > 0.7 * len(SPOILED)
    assert time.monotonic() - began_s < 60 * slowness()
