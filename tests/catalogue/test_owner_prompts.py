"""Prompts of checkpoints' owners: fetched once, checked, taken from their files, and used by `unreel eval`."""

import hashlib
import json
import os
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from chat import says, serve_chat
from net.commands import call
from unreel.catalogue import entries, names
from unreel.catalogue.entries import PromptReference, get_model
from unreel.catalogue.owner_prompts import extract_text
from unreel.core.errors import UnreadableSourceError
from warm import Warm

SOURCE = '''"""A file of an owner."""
raise SystemExit("executed")
SYSTEM = ("You look at frames. "
          "Think in <think>.")
JOINED = "a" + "b" f"c"
LATE = f"at {now}"
CAPTION = "Caption: " f"[{caption}]"
TWICE = "a"
TWICE = "b"
CALLED = "a".upper()

class Bench:
    QUERY = "in a class"
    def ask(self, times):
        lines = ["Frames and times:"]
        for t in times:
            lines.append(f"[T={t:.2f}s] <image>")
        lines.append("Real or fake?")

def main():
    TEMPLATE = Template("""Judge $caption now""")
'''
YAML = '# note\nsystem_prompt: "You \\"help\\"."\nuser_prompt: |\n  One\n\n    two\n\nother: 3\n'


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("*", SOURCE),
        ("SYSTEM", "You look at frames. Think in <think>."),
        ("JOINED", "abc"),
        ("CAPTION", "Caption: [{caption}]"),
        ("Bench.QUERY", "in a class"),
        ("Bench.ask[0]", "Frames and times:"),
        ("main.TEMPLATE", "Judge $caption now"),
    ],
)
def test_a_text_is_taken_from_a_python_file_without_executing_it(place: str, text: str) -> None:
    assert extract_text(SOURCE, "a.py", place, caption_mark="{caption}") == text


@pytest.mark.parametrize(
    "place",
    ["LATE", "TWICE", "CALLED", "MISSING", "Bench.ask[99]", "Bench", "main.CALLED", "QUERY"],
)
def test_a_text_that_is_missing_or_no_constant_is_refused(place: str) -> None:
    with pytest.raises(UnreadableSourceError, match="Nothing of it is used"):
        extract_text(SOURCE, "a.py", place)


def test_a_text_is_taken_from_the_keys_of_a_yaml_file() -> None:
    assert extract_text(YAML, "a.yaml", "system_prompt") == 'You "help".'
    assert extract_text(YAML, "a.yaml", "user_prompt") == "One\n\n  two\n"
    with pytest.raises(UnreadableSourceError):
        extract_text(YAML, "a.yaml", "other")


@contextmanager
def serve_file(data: bytes) -> Iterator[tuple[str, list[str]]]:
    """The URL of a server with one file under every path, and the paths that were fetched."""
    paths: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            paths.append(self.path)
            self.send_response(200)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Silence."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", paths
    finally:
        server.shutdown()
        server.server_close()


def build_environment(tmp_path: Path, url: str, **more: str) -> dict[str, str]:
    variables = {"UNREEL_PROMPTS_FROM": url, "UNREEL_CACHE": str(tmp_path / "cache"), **more}
    return {**os.environ, **variables}  # noqa: TID251


def test_a_changed_file_is_refused_and_not_kept(tmp_path: Path, warm: Warm) -> None:
    with serve_file(b"something else") as (url, paths):
        environment = build_environment(tmp_path, url)
        done = warm.run("models", "get", "skyra-rl", cwd=tmp_path, environment=environment)
    reference = get_model("skyra-rl").prompt.value
    assert done.returncode == 2
    assert f"the file was changed: SHA-256 must be {reference.sha256}" in done.stderr
    assert done.stdout == ""
    assert paths == [f"/JoeLeelyf/Skyra/{reference.commit}/{reference.path}"]
    assert not list((tmp_path / "cache").rglob("*"))


@pytest.mark.parametrize(
    ("name", "url", "words"),
    [
        ("skyra-lr", "http://127.0.0.1:9", "Did you mean 'skyra-rl'"),
        ("videollama3-7b", "http://127.0.0.1:9", "the file with the prompt of videollama3-7b is not known"),
        ("skyra-rl", "http://127.0.0.1:9", "cannot fetch http://127.0.0.1:9/JoeLeelyf/Skyra/"),
        ("skyra-rl", "http://example.org", "example.org is not encrypted"),
    ],
)  # fmt: skip
def test_a_prompt_that_cannot_be_fetched_is_an_error(
    tmp_path: Path, warm: Warm, name: str, url: str, words: str
) -> None:
    environment = build_environment(tmp_path, url)
    done = warm.run("models", "get", name, cwd=tmp_path, environment=environment)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr


ENTRY = """title = "{name}"
protocols = ["reality", "realism", "locate"]

[hub_ids]
value = ["owner/{name}"]
mark = "verified"
source = "https://example.org"

[prompt]
mark = "verified"
source = "https://example.org"
value.repository = "https://github.com/owner/bench"
value.commit = "{commit}"
value.path = "eval/bench.py"
value.sha256 = "{sha256}"
{prompt}

[[answer_format]]
mark = "verified"
source = "https://example.org"
value.protocol = "{protocol}"
{form}
"""
TIMED = """value.system = "SYSTEM"
value.user = ["Bench.ask[0]", "<video>", "\\n", "Bench.ask[4]"]
value.frame_time = "\\n[T={seconds:.2f}s] \""""
BOXED = 'value.place = "boxed"\nvalue.labels = { A = "real", B = "generated" }'
CAPTIONED = 'value.user = ["CAPTION"]\nvalue.caption_mark = "{caption}"'


@pytest.fixture
def serve_entries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str], None]]:
    """Add two entries to the catalogue; the function sets the URL of the server of their file."""
    folder = tmp_path / "catalogue"
    shutil.copytree(Path(entries.__file__).parent, folder)
    common = {"commit": "0" * 40, "sha256": hashlib.sha256(SOURCE.encode()).hexdigest()}
    timed = {"prompt": TIMED, "form": BOXED, "protocol": "reality"}
    captioned = {"prompt": CAPTIONED, "form": 'value.place = "whole"', "protocol": "realism"}
    for name, values in {"timed": timed, "captioned": captioned}.items():
        text = ENTRY.format(name=name, **common, **values)
        (folder / "models" / f"{name}.toml").write_text(text, encoding="utf-8")
    for module in (entries, names):
        monkeypatch.setattr(module, "files", lambda _package: folder)
    monkeypatch.setenv("UNREEL_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    for cached in (entries.get_model, names.list_entry_names):
        cached.cache_clear()
    yield partial(monkeypatch.setenv, "UNREEL_PROMPTS_FROM")
    for cached in (entries.get_model, names.list_entry_names):
        cached.cache_clear()


def list_message_texts(body: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Role and text of each part; an image is "*"."""
    parts: list[tuple[str, str]] = []
    for message in body["messages"]:
        content = message["content"]
        contents = [{"text": content}] if isinstance(content, str) else content
        parts += [(message["role"], part.get("text", "*")) for part in contents]
    return parts


def test_a_fetched_prompt_is_sent_recorded_and_its_answers_are_read(
    tmp_path: Path, serve_entries: Callable[[str], None]
) -> None:
    asked: list[dict[str, Any]] = []

    def reply(body: bytes, _headers: object) -> tuple[int, Any]:
        asked.append(json.loads(body))
        return says("It looks real at first.\n\n\\boxed{B}")

    with serve_file(SOURCE.encode()) as (url, paths), serve_chat(reply) as port:
        serve_entries(url)
        model = f"timed@http://127.0.0.1:{port}/v1"
        call("benchmarks", "example", "list", "--out", "mine")
        eval_ = ("eval", "mine/clips.csv", "--protocol", "reality", "--model", model)
        eval_ = (*eval_, "--condition", "sampling=uniform-2")

        # Before the fetch: the prompt of unreel, and a line with the command.
        done = call(*eval_, "--out", "before")
        assert done.exit_code == 1, done.stderr
        assert "`unreel models get timed` fetches that" in done.stderr
        assert {role for role, _ in list_message_texts(asked[0])} == {"user"}

        # The second fetch finds the file of the first.
        fetched = [json.loads(call("models", "get", "timed", "--json").stdout) for _ in "ab"]
        assert fetched[0] == fetched[1]
        assert len(paths) == 1
        assert Path(fetched[0]["file"]).read_bytes() == SOURCE.encode()

        asked.clear()
        done = call(*eval_, "--out", "after", "--json")
        assert done.exit_code == 0, done.stderr
        assert "timed is asked with its owner's prompt" in done.stderr
        texts = list_message_texts(asked[0])
        assert texts[0] == ("system", "You look at frames. Think in <think>.")
        assert "".join(text for _, text in texts[1:]).startswith("Frames and times:\n[T=0.25s] *\n[T=0.75s] *")  # fmt: skip
        assert texts[-1] == ("user", "\nReal or fake?")

        recipe = json.loads((tmp_path / "after" / "recipe.json").read_text())
        sha256 = hashlib.sha256(SOURCE.encode()).hexdigest()
        variant = f"timed@{sha256[:12]}"
        assert [each["prompt"] for each in recipe["recipe"]["condition"]] == [variant]
        assert recipe["prompts"][variant]["sha256"] == sha256
        assert recipe["prompts"][variant]["path"] == "eval/bench.py"
        (score,) = json.loads(done.stdout)["scores"]
        card = score["scorecard"]
        assert card["n_questions"] == card["n_answered"] == len(asked)

        # Scores need no prompt; a question does.
        Path(fetched[0]["file"]).write_text("changed")
        assert call("report", "after", "--out", "page").exit_code == 0
        again = call("eval", "--out", "after", "--retry-failed")
        assert f"{variant} was not fetched. Run `unreel models get timed`" in str(again.exception)


def test_a_prompt_with_a_caption_needs_the_prompt_of_the_generator(
    tmp_path: Path, serve_entries: Callable[[str], None]
) -> None:
    asked: list[dict[str, Any]] = []

    def reply(body: bytes, _headers: object) -> tuple[int, Any]:
        asked.append(json.loads(body))
        return says("4")

    with serve_file(SOURCE.encode()) as (url, _), serve_chat(reply) as port:
        serve_entries(url)
        call("models", "get", "captioned")
        call("benchmarks", "example", "list", "--out", "mine")
        clips = sorted((tmp_path / "mine").rglob("*.mp4"))[:2]
        names = [clip.relative_to(tmp_path / "mine") for clip in clips]
        table = f"location,label,score,prompt\n{names[0]},generated,4,a {{caption}} <think>\n{names[1]},real,2,\n"  # fmt: skip
        (tmp_path / "mine" / "rated.csv").write_text(table)
        model = f"captioned@http://127.0.0.1:{port}/v1"
        done = call(
            *("eval", "mine/rated.csv", "--protocol", "realism", "--model", model),
            *("--out", "r", "--json"),
        )
    assert done.exit_code == 1, done.stderr
    (body,) = asked
    assert list_message_texts(body)[-1] == ("user", "Caption: [a {caption} < think>]")
    card = json.loads(done.stdout)["scores"][0]["scorecard"]
    assert (card["n_questions"], card["n_answered"]) == (2, 1)
    assert card["failures"] == {"request-rejected": 1}


def test_a_prompt_of_an_owner_is_for_models_behind_a_server(tmp_path: Path, warm: Warm) -> None:
    reference = get_model("skyra-rl").prompt.value
    assert isinstance(reference, PromptReference)
    for model, prompt, words in (
        ("coin", f"skyra-rl@{reference.sha256[:12]}", "is for models behind a server, got coin"),
        ("vllm/x", "skyra-rl@000000000000", "the catalogue has no prompt 'skyra-rl@000000000000'"),
        ("vllm/x", f"skyra-rl@{reference.sha256[:12]}", "protocol of the prompt of skyra-rl"),
    ):
        done = warm.run(
            *("eval", "x.csv", "--protocol", "realism", "--model", model),
            *("--condition", f"prompt={prompt}"),
            cwd=tmp_path,
        )
        assert done.returncode == 2
        assert words in done.stderr
