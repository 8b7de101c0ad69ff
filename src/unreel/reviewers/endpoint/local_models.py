"""Models that servers on this computer offer: Ollama, LM Studio, llama.cpp and vLLM at their usual ports."""

import json
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from itertools import chain
from typing import Any
from urllib.parse import urlsplit

from unreel.core.errors import InvalidSettingError
from unreel.reviewers.endpoint.model_address import PROVIDERS

NOTHING_LEAVES = "runs on this computer; nothing leaves it"
_SERVERS = ("ollama", "lmstudio", "llamacpp", "vllm")
_TIMEOUT_S = 0.3
_MAX_BYTES = 1 << 20
_MAX_MODELS = 20
_MAX_NAME = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalModel:
    """Model of a server on this computer."""

    name: str
    """Name for `--model`, such as `ollama/qwen3-vl:8b`."""
    sees_pictures: bool | None = None
    """Whether the model accepts pictures; `None` if the server does not say it."""
    context_tokens: int | None = None
    """Context length with which the model is loaded; `None` if the server does not say it."""


def find_local_models() -> tuple[LocalModel, ...]:
    """Return the models of running servers on this computer, those that see pictures first.

    Each request waits at most 0.3 seconds, carries no key and goes to a loopback address.
    """
    with ThreadPoolExecutor(len(_SERVERS)) as pool:
        models = chain.from_iterable(pool.map(_list_models, _SERVERS))
    ranks = {True: 0, None: 1, False: 2}
    return tuple(sorted(models, key=lambda model: ranks[model.sees_pictures]))


def require_local_model() -> str:
    """Return the name of the first model on this computer that may see pictures.

    Raises:
        InvalidSettingError: No running server offers one.
    """
    models = find_local_models()
    for model in models:
        if model.sees_pictures is not False:
            return model.name
    blind = ", ".join(model.name for model in models)
    raise InvalidSettingError(
        "--model local",
        f"no model here accepts pictures, only text: {blind}"
        if blind
        else "no model server runs on this computer",
        "Start one, for example `ollama run qwen3-vl:8b`",
    )


def _list_models(provider: str) -> list[LocalModel]:
    base = urlsplit(PROVIDERS[provider].base_url or "")
    server = (base.hostname or "", base.port or 0)
    listed = _request_json(server, f"{base.path}/models")
    entries = [
        entry
        for entry in _get_list(listed.get("data"))[:_MAX_MODELS]
        if isinstance(entry.get("id"), str) and len(entry["id"]) <= _MAX_NAME
    ]
    details = list(_read_details(provider, server, entries))
    return [
        LocalModel(name=f"{provider}/{entry['id']}", sees_pictures=sees, context_tokens=tokens)
        for entry, (sees, tokens) in zip(entries, details, strict=True)
    ]


def _read_details(
    provider: str, server: tuple[str, int], entries: list[dict[str, Any]]
) -> Iterator[tuple[bool | None, int | None]]:
    """Yield for each model whether it sees pictures, and its context length, as its server states them."""
    if provider == "ollama":
        running = _get_list(_request_json(server, "/api/ps").get("models")) if entries else []
        loaded = {model.get("name"): _get_count(model.get("context_length")) for model in running}
        for entry in entries:
            shown = _request_json(server, "/api/show", {"model": entry["id"]})
            capabilities = shown.get("capabilities")
            sees = "vision" in capabilities if isinstance(capabilities, list) else None
            yield sees, loaded.get(entry["id"])
    elif provider == "lmstudio":
        listed = _get_list(_request_json(server, "/api/v0/models").get("data")) if entries else []
        models = {model.get("id"): model for model in listed}
        for entry in entries:
            model = models.get(entry["id"], {})
            sees = model["type"] == "vlm" if isinstance(model.get("type"), str) else None
            yield sees, _get_count(model.get("loaded_context_length"))
    elif provider == "llamacpp":
        props = _request_json(server, "/props") if entries else {}
        modalities = props.get("modalities")
        sees = modalities.get("vision") is True if isinstance(modalities, dict) else None
        settings = props.get("default_generation_settings")
        tokens = _get_count(settings.get("n_ctx")) if isinstance(settings, dict) else None
        yield from [(sees, tokens)] * len(entries)
    else:
        yield from ((None, _get_count(entry.get("max_model_len"))) for entry in entries)


def _request_json(
    server: tuple[str, int], path: str, body: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return the JSON object that a server replies with; an empty one if there is none."""
    connection = HTTPConnection(*server, timeout=_TIMEOUT_S)
    try:
        if body is None:
            connection.request("GET", path)
        else:
            headers = {"Content-Type": "application/json"}
            connection.request("POST", path, json.dumps(body), headers)
        reply = connection.getresponse()
        value = json.loads(reply.read(_MAX_BYTES)) if reply.status == HTTPStatus.OK else {}
    except (OSError, HTTPException, ValueError, RecursionError):
        return {}
    finally:
        connection.close()
    return value if isinstance(value, dict) else {}


def _get_list(value: object) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _get_count(value: object) -> int | None:
    return value if isinstance(value, int) and value > 0 else None
