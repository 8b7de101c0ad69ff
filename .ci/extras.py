"""Installs the wheel with each extra into an empty environment, with the newest and the oldest allowed dependencies.

    python .ci/extras.py [--wheel FILE] [--uv PROGRAM] [EXTRA ...]    # default: all extras and `base`

Runs `unreel --help`, `unreel review --sample`, `unreel doctor` and, with the extra eval, `unreel eval` and `report` in
each environment, and prints one line for each. A line that failed has the last words of its message, and the exit
status is 1. For a nightly run: each environment is resolved from the index.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESOLUTIONS = ("highest", "lowest-direct")
BASE = "base"


def list_extras() -> list[str]:
    """Return the names of all extras, after the base."""
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return [BASE, *pyproject["project"]["optional-dependencies"]]


def find_wheel() -> Path:
    """Return the wheel of the last `.ci/run`."""
    wheels = sorted((ROOT / ".venv-ci" / "wheels").rglob("unreel-*.whl"))
    if not wheels:
        sys.exit(
            "no wheel. Build one, `hatchling build -t wheel -d .venv-ci/wheels/plain`, or give --wheel"
        )
    return wheels[-1]


def try_extra(extra: str, resolution: str, wheel: Path, uv: str) -> str:
    """Install and start one extra; return its problem, or an empty text."""
    with tempfile.TemporaryDirectory() as folder:
        python = str(Path(folder, "bin", "python"))
        program = str(Path(folder, "bin", "unreel"))
        # As a direct requirement the wheel alone would be lowered, and nothing that it requires.
        wanted = ["-r", str(ROOT / "pyproject.toml"), f"unreel @ {wheel.absolute().as_uri()}"]
        if extra != BASE:
            wanted += ["--extra", extra]
        install = ["pip", "install", "-q", "--python", python, "--resolution", resolution, *wanted]
        review = [program, "review", "--sample", "--out", "review", "--json"]
        for command in ([uv, "venv", "-q", folder], [uv, *install], [program, "--help"], review):
            done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
            if done.returncode:
                return " ".join(done.stderr.split())[-400:] or f"status {done.returncode}"
        # Its status is that of the sandbox of this machine.
        done = subprocess.run(
            [program, "doctor", "--json"], check=False, capture_output=True, text=True
        )
        if not done.stdout:
            return " ".join(done.stderr.split())[-400:]
        found = json.loads(done.stdout)["extras"]
        if extra != BASE and not found[extra]:
            return "doctor finds it incomplete"
        return try_eval(program, folder) if found["eval"] else ""


def try_eval(program: str, folder: str) -> str:
    """Evaluate a baseline on synthesised clips; return the problem, or an empty text."""
    eval_ = ["eval", "sample/clips/manifest.csv", "--model", "coin", "--protocol", "reality"]
    for words in (["curate", "init", "--sample"], eval_, ["report", "runs", "--out", "report"]):
        done = subprocess.run(
            [program, *words], cwd=folder, check=False, capture_output=True, text=True
        )
        if done.returncode:
            return " ".join(done.stderr.split())[-400:] or f"status {done.returncode}"
    return ""


def main() -> int:
    """Try the extras one after the other and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("extras", nargs="*", metavar="EXTRA")
    parser.add_argument("--wheel", type=Path)
    parser.add_argument("--uv", default=shutil.which("uv") or "uv")
    options = parser.parse_args()
    wheel, n_failed = options.wheel or find_wheel(), 0
    for extra in options.extras or list_extras():
        for resolution in RESOLUTIONS:
            started = time.monotonic()
            problem = try_extra(extra, resolution, wheel, options.uv)
            n_failed += bool(problem)
            seconds = time.monotonic() - started
            print(f"{extra:12} {resolution:14} {seconds:6.0f} s  {problem or 'works'}", flush=True)
    return int(n_failed > 0)


if __name__ == "__main__":
    sys.exit(main())
