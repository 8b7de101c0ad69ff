"""Every number of the README and of the front pages has a row in docs/evidence.md."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "docs/index.md", "docs/gallery.md")
EVIDENCE = (ROOT / "docs" / "evidence.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| ([\d., ]+) \| .+ \| .*`.+`.* \| \d+ \w+ \d{4} \|$", re.MULTILINE)
NUMBER = re.compile(r"(?<![\w./-])\d+(?:[.,]\d+)*(?![\w-])")
NO_NUMBER = re.compile(
    r"```python.*?```|^\$ [^#\n]*|`[^`\n]+`|\]\([^)]*\)|November 2026|^reality@\d",
    re.MULTILINE | re.DOTALL,
)
"""Code, addresses, commands without their comments, and dates."""


def read_numbers(page: str) -> set[str]:
    return set(NUMBER.findall(NO_NUMBER.sub(" ", page).replace("/", " ")))


@pytest.mark.parametrize("page", PAGES)
def test_every_number_has_a_row(page: str) -> None:
    proven = {number for row in ROW.findall(EVIDENCE) for number in row.split(", ")}
    assert read_numbers((ROOT / page).read_text("utf-8")) - proven == set()


def test_every_row_is_about_a_number_of_a_page() -> None:
    shown = set().union(*(read_numbers((ROOT / page).read_text("utf-8")) for page in PAGES))
    proven = {number for row in ROW.findall(EVIDENCE) for number in row.split(", ")}
    assert proven - shown == set()


def test_numbers_are_found_in_text_tables_and_output_but_not_in_code_and_dates() -> None:
    page = "A 12 MB, `13`.\n\n| 1.5 | November 2026 |\n\n```console\n$ x --n 3  # 4 clips\n127/136\n```\n"
    page += "\n```python\nx = 9\n```\n"
    assert read_numbers(page) == {"12", "1.5", "4", "127", "136"}
