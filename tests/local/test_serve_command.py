"""`unreel serve` as people type it: what is told, and that nothing is left behind. vLLM is a stand-in here."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from local.stand_in import write_adapter, write_interpreter, write_model
from unreel.cli.serve import serve as command
from unreel.core.errors import UnreelError

MAIN = "from unreel.cli.main import main; main()"


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def is_gone(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state == "Z"


def are_gone(pids: list[int], *, seconds: float = 20) -> bool:
    until_s = time.monotonic() + seconds
    while time.monotonic() < until_s:
        if all(map(is_gone, pids)):
            return True
        time.sleep(0.1)
    return False


class Served:
    """A command under way, and what its server wrote down."""

    def __init__(self, folder: Path, *typed: object, **environment: str) -> None:
        self.record = folder / "record.json"
        self.process = subprocess.Popen(
            [sys.executable, "-c", MAIN, "serve", *map(str, typed)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={
                **os.environ,  # noqa: TID251  handed on to a child
                "VLLM_STAND_IN_RECORD": str(self.record),
                **environment,
            },
        )

    def told(self) -> dict[str, Any]:
        """The JSON that it printed once it was up."""
        assert self.process.stdout is not None
        lines = []
        for line in self.process.stdout:
            lines.append(line)
            if line == "}\n":
                return json.loads("".join(lines))
        raise AssertionError(self.process.communicate()[1])

    def recorded(self) -> dict[str, Any]:
        return json.loads(self.record.read_text())


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Any]:
    python, started = write_interpreter(tmp_path), []

    def start(*typed: object, **environment: str) -> Served:
        place = ("--port", free_port(), "--python", python, "--json", "--gpus", 0)
        started.append(Served(tmp_path, *typed, *place, **environment))
        return started[-1]

    yield start
    for served in started:
        served.process.kill()
        served.process.communicate()


def test_it_tells_whom_to_ask_and_ends_with_all_that_it_started(serve: Any, tmp_path: Path) -> None:
    served = serve(write_model(tmp_path / "mine", "qwen3_vl"))
    told = served.told()
    assert told["vllm"] == "0.32.0"
    name, _, address = told["models"][0]["model"].partition("@")
    assert name.startswith("vllm/qwen3-vl.mine.")
    assert address == f"{told['address']}/v1"
    assert told["models"][0]["show"] == ["frames", "video"]
    pids = served.recorded()["pids"]
    served.process.send_signal(signal.SIGINT)
    assert served.process.wait(30) == 0
    assert are_gone(pids)


def test_a_name_of_the_catalogue_is_served_from_the_cache_of_the_hub(
    serve: Any, tmp_path: Path
) -> None:
    cached = tmp_path / "hub" / "models--nvidia--Cosmos-Reason2-8B"
    (cached / "refs").mkdir(parents=True)
    (cached / "refs" / "main").write_text("0" * 40)
    model = write_model(cached / "snapshots" / ("0" * 40), "qwen3_vl")
    place = {"HF_HUB_CACHE": str(tmp_path / "hub"), "HF_HUB_OFFLINE": "1"}
    served = serve("cosmos-reason2-8b", "--max-length", 4096, **place)
    told = served.told()
    assert [each["model"].partition("@")[0] for each in told["models"]] == [
        "vllm/nvidia/Cosmos-Reason2-8B"
    ]
    argv = served.recorded()["argv"]
    assert argv[:2] == ["--model", str(model)]
    options = dict(pairwise(argv))
    assert options["--served-model-name"] == "nvidia/Cosmos-Reason2-8B"
    assert options["--max-model-len"] == "4096"
    assert options["--load-format"] == "safetensors"
    assert argv[-2:] == ["--media-io-kwargs", '{"video":{"num_frames":-1}}']
    assert served.recorded()["environment"]["HF_HUB_OFFLINE"] == "1"
    served.process.send_signal(signal.SIGINT)
    assert served.process.wait(30) == 0


def test_a_name_whose_weights_cannot_be_had_is_an_error(serve: Any, tmp_path: Path) -> None:
    served = serve("cosmos-reason2-8b", HF_HUB_CACHE=str(tmp_path), HF_HUB_OFFLINE="1")
    out, told = served.process.communicate(timeout=60)
    assert (served.process.returncode, out) == (2, "")
    assert "cannot download nvidia/Cosmos-Reason2-8B" in told


def test_nothing_is_left_when_it_is_killed_outright(serve: Any, tmp_path: Path) -> None:
    served = serve(write_model(tmp_path / "mine", "qwen3_vl"))
    served.told()
    served.process.kill()
    assert are_gone(served.recorded()["pids"])


def test_a_server_that_dies_later_ends_the_command_with_words(serve: Any, tmp_path: Path) -> None:
    served = serve(write_model(tmp_path / "mine", "qwen3_vl"))
    served.told()
    server, left = served.recorded()["pids"]
    os.kill(server, signal.SIGKILL)
    said = served.process.communicate(timeout=30)[1]
    assert served.process.returncode == 2
    assert "vLLM ended" in said
    assert are_gone([left])


def test_a_server_that_does_not_start_tells_its_last_lines(serve: Any, tmp_path: Path) -> None:
    served = serve(write_model(tmp_path / "mine", "qwen3_vl"), VLLM_STAND_IN_DIES="1")
    out, said = served.process.communicate(timeout=60)
    assert served.process.returncode == 2
    assert out == ""
    assert "no room for the weights" in said
    assert "\x1b" not in said
    assert are_gone(served.recorded()["pids"])


def test_keys_stay_here_adapters_are_named_and_a_mended_folder_is_links(
    serve: Any, tmp_path: Path
) -> None:
    keys = {"OPENAI_API_KEY": "sk-1", "AWS_SECRET_ACCESS_KEY": "s", "HF_TOKEN": "h"}
    model = write_model(tmp_path / "base", "video_llama_3")
    tuned = write_adapter(tmp_path / "a=b")
    own = {"VLLM_API_KEY": "mine", "HF_HUB_OFFLINE": "0"}
    served = serve(model, "--adapter", f"strict={tuned}", **own, **keys)
    names = [each["model"].partition("@")[0] for each in served.told()["models"]]
    assert [name.rpartition(".")[0] for name in names] == [
        "vllm/videollama3.base",
        "vllm/videollama3.strict",
    ]
    recorded = served.recorded()
    environment = recorded["environment"]
    assert not {*keys} & {*environment}
    assert environment["VLLM_API_KEY"] == "mine"
    assert environment["HF_HUB_OFFLINE"] == "1"
    assert recorded["model"] == ["config.json", "model.safetensors", "processor_config.json"]
    assert recorded["argv"][1] != str(model)


def refused(*typed: object) -> str:
    """What the command says before anything starts."""
    with pytest.raises(UnreelError) as told:
        command.main([*map(str, typed)], standalone_mode=False)
    return str(told.value)


def test_a_port_that_is_taken_is_told_before_anything_starts(tmp_path: Path) -> None:
    model, python = write_model(tmp_path / "m", "qwen3_vl"), write_interpreter(tmp_path)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        said = refused(model, "--port", taken.getsockname()[1], "--python", python)
    assert "--port" in said
    assert "give another" in said


@pytest.mark.parametrize(
    ("version", "words"),
    [(None, "has no vLLM"), ("0.29.1", "known vulnerabilities"), ("0.31.0", "loses the instants")],
)
def test_an_interpreter_without_a_fit_vllm_is_refused_with_what_to_do(
    tmp_path: Path, version: str | None, words: str
) -> None:
    model = write_model(tmp_path / "m", "qwen3_vl")
    said = refused(model, "--python", write_interpreter(tmp_path, version))
    assert words in said
    assert "nstall" in said


def test_strangers_may_ask_only_with_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VLLM_API_KEY", raising=False)
    model, python = write_model(tmp_path / "m", "qwen3_vl"), write_interpreter(tmp_path)
    assert "VLLM_API_KEY" in refused(model, "--host", "0.0.0.0", "--python", python)
