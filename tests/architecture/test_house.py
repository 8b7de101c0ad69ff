"""The house stays the house: light imports, short files, documented words."""

import ast
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

import unreel
from unreel.core.settings import PREFIX, EnvironmentSettings

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "unreel"
MODULES = sorted(SOURCE.rglob("*.py"))
HEAVY = {
    "av",
    "evalica",
    "httpx2",
    "lance",
    "numpy",
    "pandas",
    "PIL",
    "pyarrow",
    "pydantic",
    "ray",
    "rich",
    "scipy",
    "torch",
    "transformers",
}


def _loaded_by(statement: str) -> set[str]:
    code = f"import sys; {statement}; print(*{{m.partition('.')[0] for m in sys.modules}})"
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return set(run.stdout.split())


def test_importing_unreel_loads_no_heavy_package() -> None:
    assert HEAVY.isdisjoint(_loaded_by("import unreel"))


@pytest.mark.parametrize("layer", ["core", "protocols"])
def test_the_light_layers_stay_light(layer: str) -> None:
    modules = [path.stem for path in (SOURCE / layer).glob("*.py") if path.stem != "__init__"]
    imports = ", ".join(f"unreel.{layer}.{module}" for module in modules)
    heavy = HEAVY - {"numpy", "scipy"} if layer == "protocols" else HEAVY
    assert heavy.isdisjoint(_loaded_by(f"import {imports}"))


def test_every_public_name_can_be_reached() -> None:
    assert unreel.__all__ == sorted(unreel.__all__)
    assert all(getattr(unreel, name) is not None for name in unreel.__all__)


def test_no_module_outgrows_one_screenful_of_ideas() -> None:
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}
    assert {str(path): n for path, n in lengths.items() if n > 800} == {}


def test_every_module_says_what_it_is_for() -> None:
    texts = {path: ast.parse(path.read_text(encoding="utf-8")) for path in MODULES}
    assert [str(path) for path, tree in texts.items() if not ast.get_docstring(tree)] == []


def test_no_file_names_a_path_of_one_machine() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    texts = [ROOT / name for name in listed.split("\0") if name and not name.endswith((".png",))]
    needle = "/" + "work/"
    found = [
        path.name
        for path in texts
        if path.exists() and needle in path.read_text(encoding="utf-8", errors="replace")
    ]
    assert found == []


def test_every_setting_is_documented() -> None:
    text = (ROOT / "docs" / "reference" / "settings.md").read_text(encoding="utf-8")
    assert [
        f.name for f in fields(EnvironmentSettings) if f"`{PREFIX}{f.name.upper()}`" not in text
    ] == []


def test_every_decision_has_the_same_four_parts() -> None:
    decisions = sorted((ROOT / "docs" / "decisions").glob("0*.md"))
    assert len(decisions) >= 5
    for path in decisions:
        text = path.read_text(encoding="utf-8")
        for part in (
            "## What others run",
            "## Decision",
            "## Consequences",
            "## What would change it",
        ):
            assert part in text, f"{path.name} lacks {part!r}"


DOORS = {SOURCE / "cli" / f"{name}.py" for name in ("console", "output", "safe_streams")}
PRINTERS = {"print", "echo", "secho", "Console", "pprint", "style", "prompt", "confirm"}
STREAMS = {"stdout", "stderr", "__stdout__", "__stderr__"}


def _prints(tree: ast.Module) -> list[int]:
    """Lines that print past the doors: by a printer of others, or by a stream."""
    ours = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "unreel.cli.output"
        for alias in node.names
    }
    found = []
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=name)) if name in PRINTERS - ours:
                found.append(node.lineno)
            case ast.Call(func=ast.Attribute(value=ast.Name(id="click" | "rich"), attr=name)):
                found += [node.lineno] * (name in PRINTERS)
            case ast.Attribute(value=ast.Name(id="sys"), attr=name) if name in STREAMS:
                found.append(node.lineno)
            case _:
                pass
    return found


def test_nothing_is_printed_but_through_the_doors_that_make_text_plain() -> None:
    found = {
        str(path.relative_to(SOURCE)): lines
        for path in MODULES
        if path not in DOORS and (lines := _prints(ast.parse(path.read_text(encoding="utf-8"))))
    }
    # The end of the program shows click's complaint on the stream that `guard_streams` made plain.
    # A comparison turns the scorecards that come before it to the other of these streams.
    # A Python call shows a progress bar of our own words, on a terminal alone.
    # The client of the reward service runs in the environment of a trainer, without this package.
    assert found.keys() == {
        "cli/main.py",
        "cli/compare_checkpoints.py",
        "api/progress_bar.py",
        "rewards/client/unreel_reward_client.py",
    }
    assert len(found["cli/main.py"]) == 1
