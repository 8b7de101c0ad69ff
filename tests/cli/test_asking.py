"""Asking without frustration: keys, servers, several models, a dry run, and how to go on."""

import json
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from chat import Reply, refuses, says, serve_chat
from synthesise import ClipRecipe, synthesise

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")

SECRET = "sk-4f0c9e-never-shown"
FLOORS = ("--model", "coin", "--model", "always-real")


@dataclass
class Chat:
    """A server on loopback that answers `tiny`, rejects the key for `locked`, and knows no `lost`."""

    port: int = 0
    asked: list[str] = field(default_factory=list)
    is_mended: bool = False

    def model(self, name: str) -> str:
        return f"vllm/{name}@http://127.0.0.1:{self.port}/v1"

    def reply(self, model: str) -> Reply:
        self.asked.append(model)
        if model == "locked" and not self.is_mended:
            return refuses(401, "Incorrect API key provided.")
        if model == "lost" and not self.is_mended:
            return refuses(404, "There is no model lost.")
        return says("<answer>1</answer>", prompt_tokens=1000, completion_tokens=20)


@pytest.fixture
def chat() -> Iterator[Chat]:
    state = Chat()
    with serve_chat(lambda body, _: state.reply(json.loads(body)["model"])) as state.port:
        yield state


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    """Two real clips and two generated ones."""
    for number, side in enumerate(("real", "real", "generated/Veo", "generated/Veo")):
        path = tmp_path / "bench" / side / f"{number}.mp4"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(synthesise(ClipRecipe(width=96, height=64, n_frames=12, seed=number)))
    return tmp_path / "bench"


def words(*options: object) -> tuple[str, ...]:
    return ("eval", "bench", "--protocol", "reality", "--trusted", *map(str, options))


@pytest.mark.usefixtures("bench")
def test_a_rejected_key_is_told_once_by_its_variable_with_what_to_type(
    run, chat: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_COMPATIBLE_API_KEY", SECRET)
    monkeypatch.setenv("UNREEL_KEY_HOSTS", f"127.0.0.1:{chat.port}")
    typed = words("--model", chat.model("locked"), "--max-connections", 1, "--out", "my run")
    done = run(*typed)
    assert done.returncode == 2
    assert len(chat.asked) == 1
    assert done.stderr.count("Incorrect API key provided") == 1
    assert "asked with the key in OPENAI_COMPATIBLE_API_KEY" in done.stderr
    assert f"Go on with `{shlex.join(['unreel', *typed])}`" in done.stderr
    assert "4 rows of clips of this call are stored in my run" in done.stderr
    assert SECRET not in done.stdout + done.stderr


@pytest.mark.usefixtures("bench")
def test_failures_are_told_in_the_servers_words_with_the_command_that_asks_again(
    run, chat: Chat
) -> None:
    typed = words("--model", chat.model("lost"), "--out", "r")
    done = run(*typed)
    assert done.returncode == 1
    assert done.stderr.count("There is no model lost") == 1
    retry = shlex.join(["unreel", *typed, "--retry-failed"])
    assert f"Retry the failures: `{retry}`" in done.stderr
    listed = run("runs", ".")
    assert "Retry the failures in r: `unreel eval --out r --retry-failed`" in listed.stderr
    chat.is_mended = True
    again = run("eval", "--out", "r", "--retry-failed", "--trusted", "--json")
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["outcome"]["answers"]["done"] == 4
    (row,) = json.loads(run("runs", ".", "--json").stdout)
    assert (row["benchmark"], row["failed"]) == ("bench", 0)


@pytest.mark.usefixtures("bench")
def test_a_local_server_that_is_not_there_is_told_before_a_clip_is_opened(
    run, tmp_path: Path
) -> None:
    done = run(*words("--model", "vllm/tiny@http://127.0.0.1:9/v1"))
    assert done.returncode == 2
    assert "nothing listens at 127.0.0.1:9 for vllm/tiny" in done.stderr
    assert "unreel doctor" in done.stderr
    assert not (tmp_path / "runs").exists()


@pytest.mark.usefixtures("bench")
def test_several_models_have_a_run_each_and_one_table(run) -> None:
    done = run(*words(*FLOORS, "--limit", 2))
    assert done.returncode == 0, done.stderr
    header = next(line for line in done.stdout.splitlines() if "metric" in line)
    assert header.split() == ["metric", "coin", "always-real"]
    assert done.stderr.count("2 of 4 rows, drawn by seed 0: 1 real, 1 generated") == 2
    compare = next(line for line in done.stderr.splitlines() if "unreel compare" in line)
    typed = shlex.split(compare.partition("`")[2].rstrip("`"))
    told = run(*typed[1:])
    assert told.returncode == 0, told.stderr
    assert "Traceback" not in told.stderr


@pytest.mark.usefixtures("bench")
def test_a_wrong_key_of_one_model_leaves_the_others_their_runs(run, chat: Chat) -> None:
    models = ("--model", chat.model("locked"), "--model", "coin", "--out", "both")
    done = run(*words(*models, "--json"))
    assert done.returncode == 2
    locked, coin = json.loads(done.stdout)
    assert "Incorrect API key provided" in locked["problem"]
    assert coin["outcome"]["answers"]["done"] == 4
    assert coin["run"].startswith("both/coin")


@pytest.mark.usefixtures("bench")
def test_a_dry_run_asks_nobody_writes_nothing_and_tells_tokens_and_money(
    run, chat: Chat, tmp_path: Path
) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text(
        '[models."vllm/tiny"]\ninput_usd_per_million = 2.0\noutput_usd_per_million = 8.0\n'
    )
    typed = words("--model", chat.model("tiny"), "--prices", "prices.toml", "--out", "r")
    done = run(*typed, "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "4 questions about 4 clips, 0 answered, 4 to ask" in done.stdout
    assert "shown: 32 frames" in done.stdout
    assert "width x height / 784" in done.stdout
    assert "8,192 tokens (at most 2,048 an answer)" in done.stdout
    assert "0.0655 USD for output" in done.stdout
    assert chat.asked == []
    assert not (tmp_path / "r").exists()
    run(*typed, "--limit", 1)
    after = json.loads(run(*typed, "--dry-run", "--json").stdout)
    assert (after["forecast"]["n_answered"], after["forecast"]["n_due"]) == (1, 3)
    assert after["forecast"]["bill"]["output_tokens"] == 3 * 2048


@pytest.mark.usefixtures("bench")
def test_a_dry_run_needs_no_key_and_says_what_it_does_not_know(
    run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    done = run(*words("--model", "openai/gpt-5", "--dry-run"))
    assert done.returncode == 0, done.stderr
    assert "money: not known" in done.stdout
    assert "each tile of 512 pixels" in done.stdout


def test_a_review_that_nobody_can_answer_is_refused_at_once(run, clip: Path) -> None:
    done = run("review", clip, "--model", "vllm/tiny@http://127.0.0.1:9/v1")
    assert done.returncode == 2
    assert "without a key; nothing listens there now" in done.stderr
    assert "nothing listens at 127.0.0.1:9 for vllm/tiny. Start the server" in done.stderr


def test_a_missing_key_is_told_before_anything_heavy_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    code = (
        "import sys; from unreel.cli.main import main\n"
        "try: main()\n"
        "except SystemExit as end: print(end.code, sorted({'lance', 'av', 'pydantic'} & {*sys.modules}))"
    )
    typed = words("--model", "coin", "--model", "openai/gpt-5")
    done = subprocess.run(
        [sys.executable, "-c", code, *typed],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "2 []\n"
    assert "Run `export OPENAI_API_KEY=...` with your key" in done.stderr
