"""A new user's mistakes end with words that help: `stumbles.toml` has what is typed, and the status and words expected."""

import os
import shlex
import shutil
import time
import tomllib
from collections.abc import Iterator
from email.message import Message
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")

from chat import Reply, refuses, serve_chat
from footage import film, write_clip
from pace import slowness
from warm import Warm

LONGEST_S = 120
STUMBLES: dict[str, dict[str, Any]] = tomllib.loads(
    Path(__file__).with_name("stumbles.toml").read_text(encoding="utf-8")
)


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a new user has: a folder of clips of two sides, a clip, the same cut off, and a table of clips."""
    folder = tmp_path_factory.mktemp("stock")
    rows = ["location,label,creator"]
    for number in range(12):
        creator = ("", "veo", "kling")[number % 3]
        path = folder / "clips" / (f"generated/{creator}" if creator else "real") / f"{number}.mp4"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(write_clip(film(number, n_frames=24, width=128, height=96)))
        label = "generated" if creator else "real"
        rows.append(f"{path.relative_to(folder)},{label},{creator}")
    shutil.copy(folder / "clips/real/0.mp4", folder / "clip.mp4")
    (folder / "cut").mkdir()
    (folder / "cut/off.mp4").write_bytes((folder / "clip.mp4").read_bytes()[:5000])
    (folder / "clips.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    (folder / "elsewhere").mkdir()
    return folder


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of a chat server on loopback that knows no key, and not the model `unknown`."""

    def reply(body: bytes, _: Message) -> Reply:
        if b'"unknown"' in body:
            return refuses(404, "The model `unknown` does not exist")
        return refuses(401, "Incorrect API key provided")

    with serve_chat(reply) as port:
        yield f"http://127.0.0.1:{port}/v1"


@pytest.mark.parametrize("name", STUMBLES)
def test_a_stumble_ends_with_words_that_help(
    name: str, stock: Path, server: str, tmp_path: Path, warm: Warm
) -> None:
    wanted, folder = STUMBLES[name], tmp_path / "here"
    shutil.copytree(stock, folder)
    for file, text in wanted.get("files", {}).items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(text, encoding="utf-8")
    inherited = os.environ.items()  # noqa: TID251  handed on to a child
    environment = {k: v for k, v in inherited if not k.endswith("_API_KEY")}
    environment |= wanted.get("keys", {})
    typed = [(before, folder) for before in wanted.get("before", [])]
    for command, cwd in [*typed, (wanted["types"], folder / wanted.get("folder", "."))]:
        program, *words = shlex.split(command.replace("{rejecting}", server))
        assert program == "unreel"
        started_s = time.monotonic()
        ended = warm.run(*words, cwd=cwd, environment=environment)
        seconds = time.monotonic() - started_s
    told = " ".join((ended.stdout + ended.stderr).split())
    assert ended.returncode == wanted["status"], told
    assert [words for words in wanted["says"] if words not in told] == [], told
    assert [words for words in wanted.get("never", []) if words in told] == [], told
    # Others run beside it.
    assert seconds < wanted.get("within_s", LONGEST_S) * 2 * slowness()
