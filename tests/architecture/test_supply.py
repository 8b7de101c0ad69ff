"""What is installed is what was looked at: pins with hashes, licences, advisories, scripts of others."""

import datetime as dt
import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "constraints").glob("*.txt"))
TODAY = dt.date(2026, 11, 15)


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / ".ci" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_pin_is_exact_and_hashed_and_no_index_is_named(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    blocks = re.split(r"(?m)^(?=[A-Za-z])", text)[1:]
    assert blocks
    form = r"[a-z0-9.-]+==\S+(?: \\\n    --hash=sha256:[0-9a-f]{64})+\n"
    assert [block for block in blocks if not re.fullmatch(form, block)] == []
    assert "://" not in text
    assert "index-url" not in text


def versions_in(*names: str) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for name in names:
        text = (ROOT / "constraints" / f"{name}.txt").read_text(encoding="utf-8")
        for package, version in re.findall(r"(?m)^([a-z0-9.-]+)==(\S+)", text):
            found.setdefault(package, set()).add(version)
    return found


def test_the_pin_files_agree() -> None:
    together = versions_in("base", "test", "dev", "tools")
    assert {name: found for name, found in together.items() if len(found) > 1} == {}


def test_training_is_tested_with_the_same_packages_but_those_that_are_named() -> None:
    pin = (ROOT / ".ci" / "pin.py").read_text(encoding="utf-8")  # its imports need pip
    apart = re.search(r"(?m)^APART = \{(.*?)\}", pin)
    assert apart is not None
    found = versions_in("base", "test", "dev", "train")
    assert {name for name in found if len(found[name]) > 1} == set(re.findall(r'"(\S+)"', apart[1]))


def test_an_environment_is_compared_pin_by_pin() -> None:
    compare = script("installed").compare
    assert list(compare({"a": "1.0", "b": "2.0"}, {"a": "1.0", "b": "2.0", "c": "3.0"})) == []
    found = compare({"a": "1.0", "b": "2.0"}, {"b": "2.1"})
    assert list(found) == ["a is missing", "b is 2.1, not 2.0"]


def test_a_python_without_the_pins_says_what_it_lacks(tmp_path: Path) -> None:
    asked = [sys.executable, "-S", ROOT / ".ci" / "installed.py"]  # -S: nothing is installed
    run = subprocess.run(asked, cwd=tmp_path, check=False, capture_output=True, text=True)
    assert (run.returncode, run.stdout) == (1, "")
    assert re.search(r": annotated-types is missing, .*, and \d+ more\n", run.stderr)


@pytest.mark.parametrize(
    ("expression", "allowed"),
    [
        ("MIT", True),
        ("Apache-2.0 AND MIT", True),
        ("GPL-2.0-only OR MIT", True),
        ("(MIT OR GPL-2.0-only) AND ISC", True),
        ("GPL-3.0-or-later", False),
        ("MIT AND AGPL-3.0-only", False),
        ("LGPL-2.1-only", False),
        ("", False),
    ],
)
def test_a_licence_is_allowed_when_each_part_offers_one_that_is(expression, allowed) -> None:
    assert script("licences").is_allowed(expression) is allowed


def test_each_pinned_version_of_a_package_is_judged_and_silence_is_kept_only_where_nobody_told() -> (
    None
):
    sound, flawed = (
        {"name": "a", "version": version, "vulns": vulns}
        for version, vulns in (("1.0", []), ("2.0", [{"id": "PYSEC-1"}]))
    )
    silent = [{"name": name, "skip_reason": "not found"} for name in "ab"]
    assert script("advisories").gather([*silent, sound, flawed]) == {
        "a 1.0": sound,
        "a 2.0": flawed,
        "b": silent[1],
    }


def vulnerable() -> dict[str, dict]:
    flaw = {"id": "PYSEC-1", "aliases": ["GHSA-1"], "fix_versions": ["2.0"]}
    return {"a": {"name": "a", "version": "1.0", "vulns": [flaw]}}


def test_a_vulnerability_fails_unless_it_is_accepted_for_now(capsys) -> None:
    judge = script("advisories").judge
    assert judge(vulnerable(), {}, today=TODAY) == 1
    assert "a 1.0: PYSEC-1, mended in 2.0" in capsys.readouterr().out
    later, gone = ({"GHSA-1": {"until": TODAY + dt.timedelta(days=d)}} for d in (1, -1))
    assert judge(vulnerable(), later, today=TODAY) == 0
    assert judge(vulnerable(), gone, today=TODAY) == 1


@pytest.mark.parametrize("answers", [{}, {"a": {"name": "a", "skip_reason": "not found"}}])
def test_a_source_that_cannot_be_reached_is_told_and_never_an_all_clear(answers, capsys) -> None:
    assert script("advisories").judge(answers, {}, today=TODAY) == 0
    told = capsys.readouterr().out
    assert "ADVISORIES NOT CHECKED" in told
    assert "packages asked about" not in told


def test_packages_that_a_source_skips_are_named(capsys) -> None:
    answers = {"b": {"name": "b", "skip_reason": "not found"}, **vulnerable()}
    script("advisories").judge(answers, {}, today=TODAY)
    assert "ADVISORIES NOT CHECKED for 1 packages: b" in capsys.readouterr().out


def test_the_changes_to_scripts_of_others_are_exactly_the_ones_listed() -> None:
    vendored = script("vendored")
    (before, after), *_ = vendored.CHANGES["vega-lite.min.js"]
    assert vendored.change(f"x{before}".encode(), "vega-lite.min.js") == f"x{after}".encode()
    assert vendored.change(b"any text", "vega.min.js") == b"any text"
    with pytest.raises(SystemExit, match="not in the original once"):
        vendored.change(f"{before}{before}".encode(), "vega-lite.min.js")
    listed = {
        row["file"] for row in vendored.ROW.finditer((vendored.FOLDER / "README.md").read_text())
    }
    assert listed == {path.name for path in vendored.FOLDER.glob("*.js")}
