"""Models on this computer: what the four servers say of them, as their documentation states it."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from unreel.core.errors import InvalidSettingError
from unreel.desk.reviewer_sets import add_local_reviewer_sets
from unreel.desk.settings import DeskSettings
from unreel.reviewers.endpoint.model_address import PROVIDERS
from unreel.reviewers.endpoint.servers import LocalModel, find_local_models, require_local_model

OLLAMA = {
    "GET /v1/models": {"data": [{"id": "llama3:8b"}, {"id": "qwen3-vl:8b"}]},
    "GET /api/ps": {"models": [{"name": "qwen3-vl:8b", "context_length": 4096}]},
    "POST /api/show llama3:8b": {"capabilities": ["completion", "tools"]},
    "POST /api/show qwen3-vl:8b": {"capabilities": ["completion", "vision"]},
}
LM_STUDIO = {
    "GET /v1/models": {"data": [{"id": "qwen2-vl-7b-instruct"}, {"id": "gemma-2b"}]},
    "GET /api/v0/models": {
        "data": [
            {"id": "qwen2-vl-7b-instruct", "type": "vlm", "loaded_context_length": 32768},
            {"id": "gemma-2b", "type": "llm", "state": "not-loaded"},
        ]
    },
}
LLAMA_CPP = {
    "GET /v1/models": {"data": [{"id": "gemma-3-4b-it-GGUF"}]},
    "GET /props": {
        "modalities": {"vision": True, "audio": False},
        "default_generation_settings": {"n_ctx": 65536},
    },
}
VLLM = {"GET /v1/models": {"data": [{"id": "Qwen/Qwen3-VL-8B", "max_model_len": 16384}]}}


@contextmanager
def serve(replies: Mapping[str, Any]) -> Iterator[str]:
    """Serve JSON by method, path and the model in the body; yield the base URL."""

    class Handler(BaseHTTPRequestHandler):
        def reply(self) -> None:
            key = f"{self.command} {self.path}"
            if length := int(self.headers.get("Content-Length") or 0):
                key += f" {json.loads(self.rfile.read(length))['model']}"
            assert self.headers.get("Authorization") is None
            value = replies.get(key)
            data = value if isinstance(value, bytes) else json.dumps(value).encode()
            self.send_response(404 if value is None else 200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = reply  # noqa: N815  the names of http.server

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        server.shutdown()
        thread.join()


@pytest.fixture
def offer(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Start servers in the place of the local ones; the others do not run."""
    with ExitStack() as servers:

        def start(**replies: Mapping[str, Any]) -> None:
            providers = dict(PROVIDERS)
            for name in ("ollama", "lmstudio", "llamacpp", "vllm"):
                url = "http://127.0.0.1:9/v1"
                if name in replies:
                    url = servers.enter_context(serve(replies[name]))
                providers[name] = replace(providers[name], base_url=url)
            monkeypatch.setattr("unreel.reviewers.endpoint.servers.PROVIDERS", providers)

        yield start


def test_the_models_of_all_servers_are_found_and_those_that_see_come_first(offer: Any) -> None:
    offer(ollama=OLLAMA, lmstudio=LM_STUDIO, llamacpp=LLAMA_CPP, vllm=VLLM)
    assert find_local_models() == (
        LocalModel(name="ollama/qwen3-vl:8b", sees_pictures=True, context_tokens=4096),
        LocalModel(name="lmstudio/qwen2-vl-7b-instruct", sees_pictures=True, context_tokens=32768),
        LocalModel(name="llamacpp/gemma-3-4b-it-GGUF", sees_pictures=True, context_tokens=65536),
        LocalModel(name="vllm/Qwen/Qwen3-VL-8B", sees_pictures=None, context_tokens=16384),
        LocalModel(name="ollama/llama3:8b", sees_pictures=False),
        LocalModel(name="lmstudio/gemma-2b", sees_pictures=False),
    )
    assert require_local_model() == "ollama/qwen3-vl:8b"


def test_no_server_and_models_without_pictures_are_told_apart(offer: Any) -> None:
    offer()
    assert find_local_models() == ()
    with pytest.raises(InvalidSettingError, match="no model server runs on this computer"):
        require_local_model()
    offer(ollama=OLLAMA | {"GET /v1/models": {"data": [{"id": "llama3:8b"}]}})
    with pytest.raises(InvalidSettingError, match=r"only text: ollama/llama3:8b"):
        require_local_model()


def test_the_desk_offers_the_models_on_this_computer(offer: Any) -> None:
    offer(ollama=OLLAMA)
    names = [each.name for each in add_local_reviewer_sets(DeskSettings()).reviewers]
    assert names == [
        "No model: findings in the file only",
        "ollama/qwen3-vl:8b (runs on this computer; nothing leaves it)",
    ]
    offer()
    assert add_local_reviewer_sets(DeskSettings()) == DeskSettings()


@pytest.mark.parametrize(
    "listed",
    [
        b"<html>another program</html>",
        b"[" * 100_000,
        [],
        {"data": "x"},
        {"data": [7, {}, {"id": 7}, {"id": "x" * 999}]},
        {"data": [{"id": "m"}] * 10_000},
    ],
)
def test_another_program_at_a_port_does_no_harm(offer: Any, listed: Any) -> None:
    offer(llamacpp={"GET /v1/models": listed, "GET /props": {"modalities": "x"}})
    models = find_local_models()
    assert len(models) <= 20
    assert {model.name for model in models} <= {"llamacpp/m"}
