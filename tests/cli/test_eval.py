"""`unreel eval` as people type it: ask, come back, score again, list."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import Message
from pathlib import Path

import pytest

from chat import Reply, says, serve_chat
from synthesise import ClipRecipe, synthesise

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")


@pytest.fixture
def benchmark(tmp_path: Path) -> Path:
    """Two real clips, and one of each of two creators."""
    for number, folder in enumerate(("real", "real", "generated/Sora", "generated/Veo")):
        path = tmp_path / "bench" / folder / f"c{number}.mp4"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(synthesise(ClipRecipe(n_frames=10, seed=number)))
    return tmp_path / "bench"


def test_a_run_is_asked_once_scored_again_and_listed(run, benchmark: Path) -> None:
    asked = (
        "eval",
        benchmark,
        "--protocol",
        "reality",
        "--model",
        "always-real",
        "--out",
        "runs/a",
    )
    first = run(*asked, "--json")
    assert first.returncode == 0, first.stderr
    told = json.loads(first.stdout)
    assert told["outcome"]["answers"]["done"] == 4
    again = json.loads(run(*asked, "--json").stdout)
    assert again["outcome"]["answers"] | {"seconds": 0} == {
        "already": 4,
        "done": 0,
        "failures": {},
        "seconds": 0,
    }
    rescored = run("score", "runs/a", "--json")
    assert rescored.returncode == 0
    assert json.loads(rescored.stdout)["scores"] == told["scores"]
    (listed,) = json.loads(run("runs", "--json").stdout)
    assert (listed["reviewer"], listed["answered"], listed["failed"]) == ("always-real", 4, 0)


def test_flags_go_before_the_recipe_and_unknown_keys_are_refused(
    run, benchmark: Path, tmp_path: Path
) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(
        f'benchmark = "{benchmark}"\nprotocol = "reality"\nmodel = "coin"\nlimit = 1\n'
        '[[condition]]\nsampling = "paper-8"\n',
        encoding="utf-8",
    )
    done = run("eval", "--recipe", recipe, "--limit", 2, "--nframe", 3, "--out", "r", "--json")
    assert done.returncode == 0, done.stderr
    (score,) = json.loads(done.stdout)["scores"]
    assert score["condition"]["sampling"] == "uniform-3"
    assert score["scorecard"]["n_questions"] == 2
    recipe.write_text("modle = 'coin'\n", encoding="utf-8")
    wrong = run("eval", benchmark, "--protocol", "reality", "--model", "coin", "--recipe", recipe)
    assert wrong.returncode == 2
    assert "modle" in wrong.stderr


def test_failures_end_with_status_1_unless_few_enough(run, benchmark: Path, tmp_path: Path) -> None:
    told = tmp_path / "told.jsonl"
    told.write_text('{"clip": "c0.mp4", "text": "<answer>1</answer>"}\n', encoding="utf-8")
    asked = (
        "eval",
        benchmark,
        "--protocol",
        "reality",
        "--model",
        "recorded",
        "--recorded",
        told,
        "--trusted",
    )
    assert run(*asked).returncode == 1
    assert run(*asked, "--fail-on-error", 0.75).returncode == 0
    assert run(*asked, "--fail-on-error", 0.7).returncode == 1


@pytest.mark.parametrize(
    "options",
    [("--nframe", "4", "--fps", "2"), ("--condition", "sampling"), ("--condition", "sound=on")],
)
def test_conditions_that_cannot_be_used_are_refused(run, benchmark: Path, options) -> None:
    done = run("eval", benchmark, "--protocol", "reality", "--model", "coin", *options)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_a_judge_scores_the_explanations_of_a_run_once(
    run, benchmark: Path, tmp_path: Path
) -> None:
    trace = {"span": {"start_us": 0, "end_us": 200000}, "explanation": "The ball has no shadow."}
    rows = [
        {"file_name": "real/c0.mp4", "label": "real"},
        {
            "file_name": "generated/Sora/c2.mp4",
            "label": "generated",
            "creator": "Sora",
            "traces": [trace],
        },
    ]
    table = benchmark / "metadata.jsonl"
    table.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    told = tmp_path / "told.jsonl"
    answers = {"c0.mp4": "REAL", "c2.mp4": "FAKE <explanation>No shadow.</explanation>"}
    lines = ({"clip": clip, "text": text} for clip, text in answers.items())
    told.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    asked = (
        "eval",
        table,
        "--protocol",
        "trace",
        "--model",
        "recorded",
        "--recorded",
        told,
        "--trusted",
    )
    first = run(*asked, "--out", "r", "--json")
    assert first.returncode == 0, first.stderr
    with chat_server("0.5") as (model, questions):
        for _ in range(2):
            done = run("score", "r", "--judge", model, "--json")
            assert done.returncode == 0, done.stderr
        assert len(questions) == 1
    document = json.loads(done.stdout)
    metrics = {m["name"]: m["value"] for m in document["scores"][0]["scorecard"]["metrics"]}
    assert metrics["explanation"]["value"] == 50
    assert document["judges"][0]["scored"] == 1


@contextmanager
def chat_server(text: str) -> Iterator[tuple[str, list[bytes]]]:
    """A model on loopback that always says `text`, and what it was asked."""
    questions: list[bytes] = []

    def reply(body: bytes, _: Message) -> Reply:
        questions.append(body)
        return says(text)

    with serve_chat(reply) as port:
        yield f"compatible/judge@http://127.0.0.1:{port}/v1", questions
