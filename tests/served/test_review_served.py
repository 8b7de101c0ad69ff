"""`unreel review` against a real OpenAI-compatible server with a real, tiny, untrained vision model."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from synthesise import ClipRecipe, synthesise

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

UP_S = 300


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The model as `unreel review --model` names it."""
    for package in ("torch", "torchvision", "transformers"):
        pytest.importorskip(package, reason="needs the environment of constraints/train.txt")
    folder = tmp_path_factory.mktemp("tiny") / "tiny-vl"
    maker = Path(__file__).parents[1] / "tiny_models.py"
    subprocess.run([sys.executable, str(maker), "qwen2.5-vl", str(folder)], check=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(Path(sys.executable).with_name("transformers")), "serve", "--host", "127.0.0.1"]
    environment = os.environ | {"HF_HUB_OFFLINE": "1"}
    with subprocess.Popen([*command, "--port", str(port)], env=environment) as server:
        try:
            _await(f"http://127.0.0.1:{port}/health", server)
            yield f"compatible/{folder}@http://127.0.0.1:{port}/v1"
        finally:
            server.terminate()


def _await(url: str, server: subprocess.Popen[bytes]) -> None:
    until_s = time.monotonic() + UP_S
    while server.poll() is None and time.monotonic() < until_s:
        try:
            urllib.request.urlopen(url, timeout=5).close()
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.5)
        else:
            return
    pytest.fail("the server did not come up")


def test_nonsense_is_shown_as_a_parse_failure_with_its_text_and_never_as_a_verdict(
    served: str, tmp_path: Path
) -> None:
    clip = tmp_path / "clip.mp4"
    clip.write_bytes(synthesise(ClipRecipe(n_frames=24, seed=1)))
    command = [
        sys.executable,
        "-c",
        "from unreel.cli.main import main; main()",
        "review",
        str(clip),
    ]
    options = ["--model", served, "--protocol", "trace", "--nframe", "2", "--deadline", "240"]
    done = subprocess.run(
        [*command, *options, "--out", str(tmp_path / "out"), "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    (opinion,) = json.loads(done.stdout)["clips"][0]["opinions"]
    assert opinion["reply"]["text"], opinion
    assert not opinion["is_readable"]
    page = (tmp_path / "out" / "evidence.html").read_text(encoding="utf-8")
    assert "no verdict" in page
