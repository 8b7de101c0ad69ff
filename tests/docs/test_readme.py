"""The README tells what is so: commands, a scorecard, extras, and the size of an install."""

import json
import re
import runpy
import subprocess
import sys
import tomllib
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
BASE_SIZE = runpy.run_path(str(ROOT / ".ci" / "base_size.py"))
MAIN = "from unreel.cli.main import main; main()"
BLOCKS = re.findall(r"```console\n(.*?)```", README, flags=re.DOTALL)
TYPED = re.findall(r"^\$ unreel (.*)$", README, flags=re.MULTILINE)
EXTRAS = (ROOT / "docs" / "reference" / "extras.md").read_text(encoding="utf-8")
FOLDED = {"review", "eval", "curate", "annotate", "train", "reward", "all"}
WORDS = {"real": 1, "generated": 0}


def test_each_entrance_has_two_commands_and_all_are_linked() -> None:
    assert len(TYPED) == 6
    assert "docs/index.md" in README


def test_the_scorecard_is_what_score_prints(tmp_path: Path) -> None:
    """54 real clips and 82 generated ones answered, 33 and 54 rightly, 4 and 5 unreadably; 7 failed."""
    rows, said = ["file,label,creator"], []
    sides = {"real": (33, 17, 4, 3), "generated": (54, 23, 5, 4)}
    for label, (right, wrong, unreadable, failed) in sides.items():
        answers = [{"text": f"<answer>{WORDS[label]}</answer>"}] * right
        answers += [{"text": f"<answer>{1 - WORDS[label]}</answer>"}] * wrong
        answers += [{"text": "I cannot tell."}] * unreadable + [
            {"failure": "rate-limited"}
        ] * failed
        for number, answer in enumerate(answers):
            file = f"{label}/{number}.mp4"
            rows.append(f"{file},{label},{'Veo' if label == 'generated' else ''}")
            said.append(json.dumps({"file": file, **answer}))
    (tmp_path / "clips.csv").write_text("\n".join(rows) + "\n")
    (tmp_path / "answers.jsonl").write_text("\n".join(said) + "\n")
    typed = "score answers.jsonl --benchmark clips.csv --protocol reality"
    command = [sys.executable, "-c", MAIN, *typed.split()]
    done = subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    printed = {" ".join(line.split()) for line in (done.stdout + done.stderr).splitlines()}
    (card,) = [block for block in BLOCKS if block.startswith("reality@")]
    shown = [" ".join(line.replace("─", " ").split()) for line in card.splitlines()]
    assert [line for line in shown if line and line not in printed] == [], done.stdout + done.stderr


def test_the_page_of_extras_has_every_extra_of_the_package() -> None:
    listed = re.findall(r"^\| `unreel\[(\w+)\]` \|", EXTRAS, flags=re.MULTILINE)
    assert sorted(listed) == sorted(PROJECT["optional-dependencies"])


def test_the_readme_is_short_and_its_table_has_the_main_extras_in_six_rows() -> None:
    assert len(README.splitlines()) < 100
    rows = README.partition("## Install")[2].strip().partition("\n\n")[0].splitlines()[2:]
    assert len(rows) <= 6
    first = " ".join(row.split("|")[1] for row in rows)
    assert set(re.findall(r"unreel\[(\w+)\]", first)) == FOLDED


def test_the_extra_all_includes_every_other() -> None:
    extras = PROJECT["optional-dependencies"]
    waiting, found = ["all"], set()
    while waiting:
        name = waiting.pop()
        found.add(name)
        for line in extras[name]:
            wanted = Requirement(line)
            waiting += sorted(wanted.extras - found) if wanted.name == "unreel" else []
    brought = {Requirement(line).name for name in found for line in extras[name]}
    needed = {Requirement(line).name for lines in extras.values() for line in lines}
    assert brought == needed


def test_every_file_that_the_readme_links_exists() -> None:
    targets = re.findall(r"\]\(([^)#\s]+)", README)
    files = [target for target in targets if not target.startswith("https://")]
    assert len(files) > 15
    assert [file for file in files if not (ROOT / file).is_file()] == []


def _size_mb() -> float:
    """What the base install takes here, where compiled files may not be counted."""
    waiting, seen = list(PROJECT["dependencies"]), {"unreel"}
    while waiting:
        wanted = Requirement(waiting.pop())
        name = wanted.name.lower().replace("_", "-")
        if name in seen or (wanted.marker and not wanted.marker.evaluate({"extra": ""})):
            continue
        seen.add(name)
        waiting += distribution(name).requires or []
    return sum(BASE_SIZE["size_of"](distribution(name)) for name in seen) / 1e6


def test_the_size_of_an_install_is_about_what_the_readme_says() -> None:
    assert 0.8 < _size_mb() / BASE_SIZE["said_mb"](README) < 1.05


@pytest.mark.parametrize(
    ("measured_mb", "is_true"), [(377, True), (384, True), (386, False), (360, False)]
)
def test_a_size_that_is_no_longer_true_fails_the_check(measured_mb: float, is_true: bool) -> None:  # noqa: FBT001
    assert (
        BASE_SIZE["is_as_said"](measured_mb, "| `pip install unreel` | it; 377 MB, Linux | no |")
        is is_true
    )
