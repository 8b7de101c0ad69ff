"""A recipe from a stranger, run by somebody with keys."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.message import Message
from pathlib import Path

import pytest

from chat import Reply, says, serve_chat
from synthesise import ClipRecipe, synthesise

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")

SECRET = "sk-4f0c9e-never-shown"
VARIABLES = (
    "OPENAI_API_KEY",
    "OPENAI_ADMIN_KEY",
    "OPENAI_COMPATIBLE_API_KEY",
    "OPENROUTER_API_KEY",
    "GEMINI_API_KEY",
    "TOGETHER_API_KEY",
    "DASHSCOPE_API_KEY",
    "VLLM_API_KEY",
)


@dataclass
class Thief:
    """A chat server on loopback that keeps every header it is sent."""

    text: str = "<answer>0</answer>"
    headers: list[str] = field(default_factory=list)
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def told(self, model: str) -> str:
        return f"asks 127.0.0.1:{self.port} as {model}, without a key ("


@pytest.fixture
def thief(monkeypatch: pytest.MonkeyPatch) -> Iterator[Thief]:
    for name in VARIABLES:
        monkeypatch.setenv(name, SECRET)
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", f"api-key: {SECRET}")
    state = Thief()

    def reply(_: bytes, headers: Message) -> Reply:
        state.headers.append(str(headers))
        return says(state.text)

    with serve_chat(reply) as state.port:
        yield state


@pytest.fixture
def films(tmp_path: Path) -> Path:
    folder = tmp_path / "films"
    for number, side in enumerate(("real", "generated/Veo")):
        path = folder / side / f"{number}.mp4"
        path.parent.mkdir(parents=True)
        path.write_bytes(synthesise(ClipRecipe(width=96, height=64, n_frames=12, seed=number)))
    return folder


@pytest.mark.parametrize("provider", ["openai", "vllm", "compatible"])
def test_a_recipe_of_eval_obtains_no_key(run, films: Path, thief: Thief, provider: str) -> None:
    recipe = films.parent / "recipe.toml"
    model = f"{provider}/gpt-5"
    recipe.write_text(f'benchmark = "films"\nprotocol = "reality"\nmodel = "{model}@{thief.url}"\n')
    done = run("eval", "films", "--recipe", recipe, "--trusted")
    assert done.returncode == 0, done.stderr
    assert len(thief.headers) == 2
    assert SECRET not in "".join(thief.headers)
    assert done.stderr.count(thief.told(model)) == 1


def test_a_recipe_of_curate_obtains_no_key(run, films: Path, thief: Thief) -> None:
    recipe = films.parent / "recipe.toml"
    recipe.write_text(
        f'name = "x"\n[source]\npath = "films"\nlicence = "CC0"\n[describe]\nmodel = "openai/gpt-5@{thief.url}"\n'
    )
    early = run("curate", "step", "ingest", recipe, "--trusted")
    assert "asks" not in early.stderr
    done = run("curate", "run", recipe, "--trusted")
    assert done.returncode == 0, done.stderr
    assert len(thief.headers) == 1
    assert SECRET not in "".join(thief.headers)
    assert done.stderr.count(thief.told("openai/gpt-5")) == 1


def test_a_review_tells_each_server_once_and_sends_no_key(run, clip: Path, thief: Thief) -> None:
    models = [f"{name}/gpt-5@{thief.url}" for name in ("openai", "google")]
    chosen = [part for model in (*models, models[0]) for part in ("--model", model)]
    done = run("review", clip, *chosen, "--protocol", "reality", "--trusted", "--json")
    assert done.returncode == 0, done.stderr
    assert len(thief.headers) == 2
    assert SECRET not in "".join(thief.headers) + done.stdout + done.stderr
    assert [done.stderr.count(thief.told(f"{n}/gpt-5")) for n in ("openai", "google")] == [1, 1]


def test_a_judge_elsewhere_obtains_no_key(run, films: Path, thief: Thief) -> None:
    trace = {"span": {"start_us": 0, "end_us": 200000}, "explanation": "No shadow."}
    row = {"file_name": "generated/Veo/1.mp4", "label": "generated", "traces": [trace]}
    (films / "metadata.jsonl").write_text(json.dumps(row))
    said = {"clip": "1.mp4", "text": "FAKE <explanation>No shadow.</explanation>"}
    (films.parent / "said.jsonl").write_text(json.dumps(said))
    chosen = ("--protocol", "trace", "--model", "recorded", "--recorded", "said.jsonl")
    assert run("eval", films / "metadata.jsonl", *chosen, "--trusted", "--out", "r").returncode == 0
    thief.text = "1"
    done = run("score", "r", "--judge", f"openai/gpt-5@{thief.url}")
    assert done.returncode == 0, done.stderr
    assert len(thief.headers) == 1
    assert SECRET not in "".join(thief.headers) + done.stdout + done.stderr
    assert done.stderr.count(thief.told("openai/gpt-5")) == 1


@pytest.mark.parametrize("command", ["eval", "review"])
def test_a_key_that_would_travel_in_clear_is_refused_before_anything_is_sent(
    run, films: Path, thief: Thief, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv("UNREEL_KEY_HOSTS", f"127.1:{thief.port}")
    model = f"compatible/tiny@http://127.1:{thief.port}/v1"
    asked = ("eval", films, "--protocol", "reality") if command == "eval" else ("review", "x.mp4")
    done = run(*asked, "--model", model)
    assert done.returncode == 2
    assert "OPENAI_COMPATIBLE_API_KEY would be sent to 127.1" in done.stderr
    assert "Write https://" in done.stderr
    assert "Traceback" not in done.stderr
    assert thief.headers == []
