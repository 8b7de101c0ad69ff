"""The first ten minutes: every command of the page, in its order, in an empty folder, without a network."""

import os
import re
import shlex
import time
from pathlib import Path

import pytest

from pace import slowness
from warm import Warm

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")
pytest.importorskip("pdqhash", reason="needs the extra curate: pip install 'unreel[curate]'")

PAGE = Path(__file__).parents[2] / "docs" / "first-ten-minutes.md"
BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)
ENDS = re.compile(r"# ends with status (\d)")
LONGEST_S = 600


def read_commands(page: str) -> list[tuple[str, int]]:
    """Each command of the page with the status that it should end with."""
    lines = [line for block in BLOCK.findall(page) for line in block.splitlines()]
    typed = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    return [(line, int(end[1]) if (end := ENDS.search(line)) else 0) for line in typed]


def test_every_command_of_the_page_does_what_the_page_says(tmp_path: Path, warm: Warm) -> None:
    page = PAGE.read_text(encoding="utf-8")
    inherited = os.environ.items()  # noqa: TID251  handed on to a child
    environment = {k: v for k, v in inherited if not k.endswith("_API_KEY")}
    started, ran = time.monotonic(), 0
    for typed, status in read_commands(page):
        program, *words = shlex.split(typed, comments=True)
        if program != "unreel":
            assert program == "pip", f"who would type {program}?"
            continue
        run = warm.run(*words, cwd=tmp_path, environment=environment)
        assert run.returncode == status, f"$ {typed}\n{run.stdout}\n{run.stderr}"
        ran += 1
    assert ran > 10
    assert time.monotonic() - started < LONGEST_S * slowness()
    missing = [name for name in read_files(page) if not (tmp_path / name).exists()]
    assert missing == [], "files that the page tells the reader to open"


def read_files(page: str) -> list[str]:
    """What the page says to open."""
    return re.findall(r"Open `([^`]+)`", page)
