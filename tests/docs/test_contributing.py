"""The set-up of CONTRIBUTING.md works with the pip that Python 3.11 brings."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
BROUGHT = ("23.2.1", "24.0")
"""Versions of pip that releases of Python 3.11 bring."""


def read_commands() -> list[str]:
    """The commands of the first console block, without comments."""
    found = re.search(r"```console\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    lines = [line.removeprefix("$ ") for line in found[1].splitlines()]
    return [line.partition("  #")[0].strip() for line in lines]


def read_set_up() -> list[str]:
    """The commands from the new environment to the editable install."""
    commands = read_commands()
    first = next(n for n, line in enumerate(commands) if line.startswith("python3 -m venv"))
    last = next(n for n, line in enumerate(commands) if line.endswith("-e ."))
    return commands[first : last + 1]


def test_every_file_of_pinned_packages_in_the_set_up_exists() -> None:
    named = [name for line in read_commands() for name in re.findall(r"-r (\S+)", line)]
    assert len(named) >= 5
    assert [name for name in named if not (ROOT / name).is_file()] == []


def test_pip_installs_the_installer_alone() -> None:
    by_pip = [line for line in read_set_up() if line.startswith("pip install")]
    assert by_pip == ["pip install --require-hashes -r constraints/uv.txt"]


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("version", BROUGHT)
def test_the_set_up_works_with_the_pip_of_python_3_11(tmp_path: Path, version: str) -> None:
    """All of it with the older pip; with the newer one up to the installer, which installs the rest."""
    for name in ("constraints", "src"):
        shutil.copytree(ROOT / name, tmp_path / name)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    venv, *others = read_set_up()
    chosen = others if version == BROUGHT[0] else others[:1]
    python = getattr(sys, "_base_executable", sys.executable)
    script = [
        "set -ex",
        venv.replace("python3", python, 1),
        f"pip install -q pip=={version}",
        "pip --version",
        *chosen,
        "uv --version" if chosen != others else "unreel --version",
    ]
    done = subprocess.run(
        ["bash", "-c", "\n".join(script)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=1700,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert f"pip {version} " in done.stdout
