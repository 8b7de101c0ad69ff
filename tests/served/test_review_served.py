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

from unreel.media.synthesise import ClipRecipe, synthesise

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

PACKAGES = ["torch==2.13.0", "transformers[serving]==5.19.0", "accelerate==1.15.0", "pillow"]
UP_S = 300


@pytest.fixture(scope="module")
def model_python(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment of its own that serves models without a graphics card."""
    folder = tmp_path_factory.mktemp("model") / "env"
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = folder / "bin" / "python"
    pip = [str(python), "-m", "pip", "install", "-q"]
    subprocess.run([*pip, *PACKAGES], check=True)
    subprocess.run([*pip, "--no-deps", "torchvision==0.28.0"], check=True)
    subprocess.run([str(python), str(shared / "stack" / "torchvision_cpu.py")], check=True)
    return python


@pytest.fixture(scope="module")
def served(model_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The model as `unreel review --model` names it."""
    folder = tmp_path_factory.mktemp("tiny") / "tiny-vl"
    tests = Path(__file__).parents[1]
    command = [str(model_python), str(tests / "tiny_models.py"), "qwen2.5-vl", str(folder)]
    sources = os.environ | {"PYTHONPATH": str(tests.parent / "src")}
    subprocess.run(command, env=sources, check=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(model_python.with_name("transformers")), "serve", "--host", "127.0.0.1"]
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
