"""ARCHITECTURE.md, CONTRIBUTING.md and the docstrings of folders name files that exist."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "unreel"
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
OWN = tuple(ROOT / name for name in ("src", "tests", "benchmarks", "docs"))
FOLDERS = {path.relative_to(SOURCE).parts[0] for path in SOURCE.glob("*/**/*.py")}


def read_picture(text: str) -> list[list[str]]:
    """The layers that the first block of `text` draws, top first: names, two spaces, words."""
    block = text.split("```")[1].strip("\n")
    found = [re.match(r"\w+(?: \| \w+)*(?=  )", line) for line in block.splitlines()]
    return [line[0].split(" | ") if line else [] for line in found]


def read_rows(text: str, heading: str) -> list[str]:
    """The cells beside the first one in the table below `heading`."""
    section = text.split(f"## {heading}\n")[1].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")][1:]
    return [row.split("|", 2)[2] for row in rows]


def find_absent(cell: str) -> list[str]:
    """What `cell` links to or names in backticks and what is not there; a word stands in a file beside it."""
    names = re.findall(r"`([^`]+)`", cell)
    paths = [name for name in names if "/" in name or name.endswith(".py")]
    links = re.findall(r"\]\(([^)#]+)", cell)
    absent = [path for path in paths if not _find(path)]
    absent += [link for link in links if not (ROOT / link).exists()]
    if absent:
        return absent
    modules = [module for path in paths for found in _find(path) for module in _read(found)]
    return [name for name in names if name not in paths and not any(name in m for m in modules)]


def _read(place: Path) -> list[str]:
    files = place.rglob("*.py") if place.is_dir() else [place]
    return [file.read_text(encoding="utf-8") for file in files]


def _find(path: str) -> list[Path]:
    """Files and folders of that path, where `<word>` and `*` stand for any name."""
    pattern = re.sub(r"<\w+>", "*", path).rstrip("/")
    if "/" in pattern:
        found = [file for place in (SOURCE, SOURCE.parent, ROOT) for file in place.glob(pattern)]
    else:  # below the folders that are ours: an environment beside them holds too much
        found = [file for place in OWN for file in place.glob(f"**/{pattern}")]
    return [file for file in found if file.is_dir() or not path.endswith("/")]


def test_the_layers_of_the_picture_are_those_of_the_contract() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    (layers,) = [each["layers"] for each in contracts if each["type"] == "layers"]
    assert read_picture(ARCHITECTURE) == [re.findall(r"\w+", layer) for layer in layers]


def test_every_folder_has_its_place_in_the_picture() -> None:
    drawn = {name for layer in read_picture(ARCHITECTURE) for name in layer}
    assert FOLDERS - drawn == set()


def test_every_folder_has_its_row() -> None:
    named = re.findall(r"^\| `(\w+)/` \|", ARCHITECTURE, re.MULTILINE)
    assert sorted(named) == sorted(FOLDERS)
    rows = read_rows(ARCHITECTURE, "The folders")
    assert [absent for row in rows for absent in find_absent(row.replace("`*_job.py`", ""))] == []


def _name(init: Path) -> str:
    return str(init.parent.relative_to(SOURCE))


@pytest.mark.parametrize("init", sorted(SOURCE.rglob("*/__init__.py")), ids=_name)
def test_the_docstring_of_a_folder_names_modules_that_exist(init: Path) -> None:
    text = ast.get_docstring(ast.parse(init.read_text(encoding="utf-8"))) or ""
    named = re.findall(r"^    `([^`]+)`: ", text, re.MULTILINE)
    assert [name for name in named if not (init.parent / name).exists()] == []
    assert named or init.parent.parent != SOURCE or init.parent.name == "network"


def test_where_things_go_leads_to_what_is_there() -> None:
    rows = read_rows(CONTRIBUTING, "Where things go")
    assert len(rows) > 10
    assert {absent for row in rows for absent in find_absent(row)} == set()
