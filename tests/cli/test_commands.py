"""The commands as people type them: what they print, where, and how they end."""

import csv
import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from unreel.cli.main import COMMANDS


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(run, command: str) -> None:
    shown = run(command, "--help")
    assert shown.returncode == 0
    assert command in shown.stdout.splitlines()[0]


@pytest.mark.skipif(find_spec("lance") is not None, reason="all that these commands need is here")
@pytest.mark.parametrize(
    ("typed", "extra"),
    [
        (("eval", "."), "eval"),
        (("runs", "."), "eval"),
        (("report", "."), "eval"),
        (("curate", "run", "clip.mp4"), "curate"),
        (("curate", "audit", "."), "curate"),
        (("curate", "diff", ".", "."), "curate"),
    ],
)
def test_a_command_that_lacks_a_package_names_the_extra_that_brings_it(
    run, clip: Path, typed: tuple[str, ...], extra: str
) -> None:
    done = run(*typed)
    assert done.returncode == 2
    assert f"pip install 'unreel[{extra}]'" in done.stderr


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys\nfrom unreel.cli.main import COMMANDS\n"
        "banned = {'httpx2', 'lance', 'numpy', 'pyarrow', 'pydantic', 'ray', 'torch'}\n"
        "for name, command in COMMANDS.items():\n"
        "    group = command.target.load()\n"
        "    for word in getattr(group, 'words', {}).values():\n"
        "        word.target.load()\n"
        "    assert not banned & {*sys.modules}, (name, banned & {*sys.modules})\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_catalogue_is_installed_with_the_package(run) -> None:
    assert len(run("benchmarks", "list").stdout.splitlines()) > 30
    assert len(run("models", "list").stdout.splitlines()) > 30


def test_a_low_limit_of_address_space_ends_with_advice() -> None:
    code = "from unreel.cli.main import main; main()"
    line = f"ulimit -v 400000; exec {sys.executable} -c '{code}' probe x.mp4"
    done = subprocess.run(["/bin/sh", "-c", line], check=False, capture_output=True, text=True)
    assert done.returncode == 2
    assert "ulimit -v unlimited" in done.stderr


def test_an_unknown_command_is_asked_wrongly(run) -> None:
    assert run("prob").returncode == 2


def test_probe_says_the_same_hardened_and_trusted(run, clip: Path) -> None:
    assert run("probe", clip).stdout == run("probe", clip, "--trusted").stdout != ""


def test_probe_reports_a_broken_file_beside_the_good_ones(run, clip: Path) -> None:
    broken = clip.with_name("broken.mp4")
    broken.write_bytes(b"this is no video")
    done = run("probe", clip, broken, "--json")
    assert done.returncode == 1
    good, bad = json.loads(done.stdout)
    assert "facts" in good
    assert bad["failure"]["reason"] == "format-refused"
    spoken = run("probe", "--trusted", clip, broken)
    assert "broken.mp4: format-refused" in spoken.stderr
    assert "broken.mp4" not in spoken.stdout


def test_frames_of_a_broken_file_fail_with_a_reason(run, tmp_path: Path) -> None:
    (tmp_path / "x.mp4").write_bytes(b"")
    assert run("frames", "x.mp4").returncode == 1
    done = run("frames", "--trusted", "x.mp4", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["failure"]["detail"]


def test_an_unknown_plan_names_the_known_ones(run, clip: Path) -> None:
    done = run("frames", "--trusted", clip, "--sampling", "unifrom-8")
    assert done.returncode == 2
    assert "uniform-N" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_bad_setting_is_refused_by_name(run, clip: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNREEL_MEDIA_SECNDS", "3")
    done = run("probe", clip)
    assert done.returncode == 2
    assert "UNREEL_MEDIA_SECNDS: no such setting" in done.stderr


@pytest.fixture
def benchmark(tmp_path: Path) -> Path:
    """Six clips, two splits, two creators."""
    path = tmp_path / "clips.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["file", "label", "generator", "split"])
        for number in range(6):
            creator = ["", "Sora", "Veo"][number % 3]
            label = "generated" if creator else "real"
            writer.writerow([f"c{number}.mp4", label, creator, "val" if number < 3 else "test"])
    return path


def _answers(folder: Path, texts: dict[str, str]) -> Path:
    path = folder / "answers.jsonl"
    rows = ({"file": name, "text": text} for name, text in texts.items())
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


def test_score_ends_with_status_1_when_answers_are_missing(
    run, benchmark: Path, tmp_path: Path
) -> None:
    answers = _answers(tmp_path, {"c0.mp4": "<answer>1</answer>"})
    done = run("score", answers, "--benchmark", benchmark, "--protocol", "reality")
    assert done.returncode == 1
    assert "5 clips without an answer" in done.stderr


def test_score_of_one_split_leaves_the_others_out(run, benchmark: Path, tmp_path: Path) -> None:
    texts = {f"c{n}.mp4": "<answer>1</answer>" for n in range(6)}
    answers = _answers(tmp_path, texts)
    done = run(
        "score",
        answers,
        "--benchmark",
        benchmark,
        "--protocol",
        "reality",
        "--split",
        "val",
        "--json",
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["scorecard"]["n_questions"] == 3
    unknown = run(
        "score", answers, "--benchmark", benchmark, "--protocol", "reality", "--split", "dev"
    )
    assert unknown.returncode == 2
    assert "Known: test, val" in unknown.stderr


def test_trace_needs_the_space_of_its_boxes(run, benchmark: Path, tmp_path: Path) -> None:
    answers = _answers(tmp_path, {"c0.mp4": "REAL"})
    done = run("score", answers, "--benchmark", benchmark, "--protocol", "trace")
    assert done.returncode == 2
    assert "--box-space" in done.stderr


@pytest.mark.parametrize("given", ["label", "=x", "label="])
def test_a_mapping_without_both_sides_is_refused(
    run, benchmark: Path, tmp_path: Path, given: str
) -> None:
    answers = _answers(tmp_path, {"c0.mp4": "REAL"})
    done = run("score", answers, "--benchmark", benchmark, "--protocol", "reality", "--map", given)
    assert done.returncode == 2
    assert "FIELD=COLUMN" in done.stderr


def test_a_file_of_answers_needs_a_benchmark(run, tmp_path: Path) -> None:
    done = run("score", _answers(tmp_path, {"c0.mp4": "REAL"}))
    assert done.returncode == 2
    assert "--benchmark: missing" in done.stderr
