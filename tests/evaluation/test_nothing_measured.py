"""Nothing measured is not success: status 2 with what would help, or 1 where everybody failed."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import unreel
from unreel.core.errors import UnknownNameError, UnreadableSourceError

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")

Typed = Callable[..., Any]
COIN = ("--protocol", "reality", "--model", "coin", "--trusted")


@pytest.fixture
def bench(clips: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table that a test may change, in the working folder."""
    shutil.copytree(clips.parent, tmp_path / "bench")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "bench" / "manifest.csv"


NOTHING: dict[str, tuple[tuple[str, ...], list[str]]] = {
    "no row": (("file,label",), ["the benchmark contains no clip", "Add a row for each clip"]),
    "no usable row": (
        ("file,label", "c0.mp4,perhaps", "c1.mp4,maybe"),
        ["none of its 2 rows can be used", "The first is c0.mp4: label cannot be 'perhaps'"],
    ),
    "files outside": (
        ("file,label", "/films/c0.mp4,real", "../c1.mp4,generated"),
        ["none of its 2 rows can be used", "or allow it with --allow-outside"],
    ),
}


@pytest.mark.parametrize("name", NOTHING)
def test_a_table_without_a_usable_row_is_status_2(bench: Path, typed: Typed, name: str) -> None:
    lines, words = NOTHING[name]
    bench.write_text("\n".join(lines) + "\n")
    answers = bench.with_name("told.jsonl")
    answers.write_text('{"name": "c0.mp4", "text": "<answer>1</answer>"}\n')
    scored = ("score", answers, "--benchmark", bench, "--protocol", "reality")
    for command in (("eval", bench, *COIN, "--out", "run"), scored):
        said = typed(*command)
        assert said.status == 2, said
        assert said.out == ""
        for word in words:
            assert word in said.err
    assert not Path("run", "recipe.json").exists()


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (["test", "train"], ["no split is named 'tset'. Did you mean 'test'? Known: test, train"]),
        ([""], ["names no splits, so none is 'tset'", "write a column `split`"]),
    ],
)
def test_an_unknown_split_is_status_2_and_the_known_ones_are_told(
    bench: Path, typed: Typed, column: list[str], words: list[str]
) -> None:
    head, *rows = bench.read_text().splitlines()
    lines = [f"{head},split", *(f"{row},{column[i % len(column)]}" for i, row in enumerate(rows))]
    bench.write_text("\n".join(lines))
    answers = bench.with_name("told.jsonl")
    answers.write_text('{"name": "c0.mp4", "text": "<answer>1</answer>"}\n')
    scored = ("score", answers, "--benchmark", bench, "--protocol", "reality")
    for command in (("eval", bench, *COIN, "--out", "run"), scored):
        said = typed(*command, "--split", "tset")
        assert said.status == 2, said
        for word in words:
            assert word in said.err
    assert not Path("run", "recipe.json").exists()


def test_no_ratings_for_realism_is_status_2_before_a_clip_is_opened(
    bench: Path, typed: Typed
) -> None:
    said = typed("eval", bench, "--protocol", "realism", "--model", "coin", "--out", "run")
    assert said.status == 2
    assert "no clip has the ground truth that realism compares with" in said.err
    assert "Add a score column, or choose another protocol" in said.err
    assert not Path("run", "clips.lance").exists()
    answers = bench.with_name("told.jsonl")
    answers.write_text('{"name": "c0.mp4", "text": "5"}\n')
    said = typed("score", answers, "--benchmark", bench, "--protocol", "realism")
    assert said.status == 2
    assert "Add a score column" in said.err


def test_answers_about_other_clips_are_status_2_with_the_nearest_name(
    bench: Path, typed: Typed
) -> None:
    answers = bench.with_name("told.jsonl")
    answers.write_text('{"name": "c0.mp5", "text": "<answer>1</answer>"}\n')
    said = typed("score", answers, "--benchmark", bench, "--protocol", "reality")
    assert said.status == 2
    assert "none of its 1 answers is about a clip of the benchmark" in said.err
    assert "Did you mean 'c0.mp4'?" in said.err
    answers.write_text("")
    said = typed("score", answers, "--benchmark", bench, "--protocol", "reality")
    assert said.status == 2
    assert "the file contains no answer" in said.err


def test_a_run_in_which_every_answer_failed_is_status_1_and_says_so_in_one_line(
    bench: Path, typed: Typed
) -> None:
    answers = bench.with_name("told.jsonl")
    answers.write_text('{"clip": "other", "text": "<answer>1</answer>"}\n')
    words = ("--protocol", "reality", "--model", "recorded", "--recorded", answers)
    said = typed("eval", bench, *words, "--out", "run", "--fail-on-error", 1, "--json")
    assert said.status == 1
    assert "recorded:told: no question was answered, so nothing was measured" in said.err
    assert json.loads(said.out)["outcome"]["answers"]["failures"] == {"not-recorded": 8}
    again = typed("score", "run")
    assert again.status == 1
    assert "no question was answered, so nothing was measured" in again.err


def test_answers_that_nobody_can_read_are_no_success(bench: Path, typed: Typed) -> None:
    answers = bench.with_name("told.jsonl")
    lines = [{"clip": f"c{n}.mp4", "text": "a ball and a dog"} for n in range(8)]
    answers.write_text("\n".join(map(json.dumps, lines)))
    words = ("--protocol", "reality", "--model", "recorded", "--recorded", answers)
    scored = ("score", answers, "--benchmark", bench, "--protocol", "reality")
    for command in (("eval", bench, *words, "--out", "run"), ("score", "run"), scored):
        said = typed(*command)
        assert said.status == 1, command
        assert "no answer could be read, so nothing was measured" in said.err


def test_the_verbs_raise_the_same(bench: Path) -> None:
    with pytest.raises(UnreadableSourceError, match="no clip has the ground truth that realism"):
        unreel.evaluate(bench, model="coin", protocol="realism")
    with pytest.raises(UnreadableSourceError, match="no clip has the ground truth that realism"):
        unreel.score({"c0.mp4": "5"}, benchmark=bench, protocol="realism")
    with pytest.raises(UnreadableSourceError, match="the file contains no answer"):
        unreel.score({}, benchmark=bench, protocol="reality")
    bench.write_text(bench.read_text().replace("group", "split"))
    with pytest.raises(UnknownNameError, match="Known: g00, g01, g10, g11"):
        unreel.evaluate(bench, model="coin", protocol="reality", split="g2")
