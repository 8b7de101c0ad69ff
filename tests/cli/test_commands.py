"""The commands as people type them: what they print, where, and how they end."""

import csv
import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from PIL import Image

from unreel.cli.main import COMMANDS

DOCS = Path(__file__).parents[2] / "docs" / "reference" / "commands.md"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_documented_and_explains_itself(run, command: str) -> None:
    assert f"## unreel {command}" in DOCS.read_text(encoding="utf-8")
    shown = run(command, "--help")
    assert shown.returncode == 0
    assert command in shown.stdout.splitlines()[0]


@pytest.mark.skipif(find_spec("lance") is not None, reason="all that these commands need is here")
@pytest.mark.parametrize(
    ("typed", "extra"),
    [
        (("eval", "."), "eval"),
        (("runs", "."), "eval"),
        (("report", "."), "report"),
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


def test_help_lists_every_command(run) -> None:
    shown = run("--help").stdout
    assert all(f"  {command}" in shown for command in COMMANDS)


def test_a_low_limit_of_address_space_ends_with_advice() -> None:
    code = "from unreel.cli.main import main; main()"
    line = f"ulimit -v 400000; exec {sys.executable} -c '{code}' probe x.mp4"
    done = subprocess.run(["/bin/sh", "-c", line], check=False, capture_output=True, text=True)
    assert done.returncode == 2
    assert "ulimit -v unlimited" in done.stderr


def test_an_unknown_command_is_asked_wrongly(run) -> None:
    assert run("prob").returncode == 2


def test_probe_tells_the_exact_rate_in_json(run, clip: Path) -> None:
    done = run("probe", clip, "--json")
    assert done.returncode == 0
    (row,) = json.loads(done.stdout)
    assert row["facts"]["video"]["average_rate"] == "30000/1001"
    assert row["facts"]["audio"][0]["codec"] == "aac"


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


def test_frames_writes_the_pictures_that_it_names(run, clip: Path, tmp_path: Path) -> None:
    out = tmp_path / "pictures"
    done = run(
        "frames", clip, "--sampling", "paper-8", "--out", out, "--longest-side", 96, "--json"
    )
    assert done.returncode == 0
    shown = json.loads(done.stdout)
    assert [frame["index"] for frame in shown["frames"]] == [0, 3, 6, 9, 12, 15, 18, 21]
    assert shown["frames"][1]["at_s"] == "1001/10000"
    pictures = [Path(frame["picture"]) for frame in shown["frames"]]
    assert sorted(out.iterdir()) == sorted(pictures)
    with Image.open(pictures[0]) as picture:
        assert picture.size == (96, 64)


def test_frames_have_no_more_pixels_than_asked_for(run, clip: Path) -> None:
    shown = json.loads(run("frames", "--trusted", clip, "--max-pixels", 1_000, "--json").stdout)
    assert {(frame["width"], frame["height"]) for frame in shown["frames"]} == {(38, 25)}
    assert run("frames", "--trusted", clip, "--max-pixels", 100).returncode == 2


def test_frames_without_a_folder_only_shows_the_plan(run, clip: Path, tmp_path: Path) -> None:
    done = run("frames", "--trusted", clip)
    assert done.returncode == 0
    assert "8 of 30 frames by uniform-8" in done.stderr
    assert list(tmp_path.iterdir()) == [clip]


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


def test_published_check_recalculates_every_table(run) -> None:
    done = run("published", "check", "--json")
    assert done.returncode == 0
    counts = {row["name"]: (row["reproduced"], row["total"]) for row in json.loads(done.stdout)}
    assert counts["DTR overall"] == (42, 42)
    assert counts["DTR accuracy"] == (41, 42)
    assert counts["VRT table 2 cells"] == (53, 69)
    assert counts["VRT table 3 cells"] == (41, 47)
    assert counts["VRT human table"] == (7, 7)
    assert counts["VRB pairs"] == (1, 1)
    assert counts["DTR table 1 explained"] == (6, 7)
    assert counts["VRT human clips"] == (0, 1)
    assert "VRB PCR" not in counts  # no printed source is at hand


def test_published_check_names_a_cause_for_each_misprint(run) -> None:
    for row in json.loads(run("published", "check", "--json").stdout):
        assert row["reproduced"] + len(row["misprints"]) == row["total"]
        assert all(misprint["cause"] != "unexplained" for misprint in row["misprints"])


def test_published_show_prints_a_table_or_the_list_of_tables(run) -> None:
    assert "deeptrace_test" in run("published", "show").stdout
    table = json.loads(run("published", "show", "reality_human", "--json").stdout)
    assert table["rows"][0]["creator"] == "Veo3.1-Fast"
    missing = run("published", "show", "reality_humn")
    assert missing.returncode == 2
    assert "Did you mean 'reality_human'" in missing.stderr


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


def test_score_gives_every_figure_an_interval_a_count_and_a_coverage(
    run, benchmark: Path, tmp_path: Path
) -> None:
    texts = {f"c{n}.mp4": f"<answer>{1 if n % 3 == 0 else 0}</answer>" for n in range(6)}
    done = run(
        "score",
        _answers(tmp_path, texts),
        "--benchmark",
        benchmark,
        "--protocol",
        "reality",
        "--json",
    )
    assert done.returncode == 0, done.stderr
    card = json.loads(done.stdout)["scorecard"]
    metrics = {metric["name"]: metric for metric in card["metrics"]}
    assert metrics["fake-accuracy"]["value"]["value"] == 100
    assert metrics["fake-accuracy"]["value"]["low"] < 100
    assert metrics["fake-accuracy"]["value"]["n"] == 4
    assert metrics["fake-accuracy"]["coverage"] == {"parsed": 4, "asked": 4}


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


def test_score_with_no_readable_answer_has_no_accuracy(
    run, benchmark: Path, tmp_path: Path
) -> None:
    texts = {f"c{n}.mp4": "I cannot help with that." for n in range(6)}
    done = run(
        "score",
        _answers(tmp_path, texts),
        "--benchmark",
        benchmark,
        "--protocol",
        "reality",
        "--json",
    )
    metrics = json.loads(done.stdout)["scorecard"]["metrics"]
    assert all("why" in metric["value"] for metric in metrics if "all-clips" not in metric["name"])


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


def test_doctor_says_which_layers_protect_this_machine(run) -> None:
    done = run("doctor", "--json")
    told = json.loads(done.stdout)
    assert "rlimits" in told["sandbox"]["active"]
    assert done.returncode == (0 if len(told["sandbox"]["active"]) == 6 else 1)


def test_a_file_of_answers_needs_a_benchmark(run, tmp_path: Path) -> None:
    done = run("score", _answers(tmp_path, {"c0.mp4": "REAL"}))
    assert done.returncode == 2
    assert "--benchmark: missing" in done.stderr
