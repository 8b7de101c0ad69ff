"""Servers of models: URL and API key of requests, and a check whether a local server listens.

A recipe may come from a stranger and may contain any server URL. So a URL alone never
gets a key: the environment defines the key, and the environment defines the hosts that get it.
"""

import json
import socket
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTP_PORT, HTTPConnection, HTTPException
from itertools import chain
from typing import Any
from urllib.parse import urlsplit

from unreel.core.errors import InvalidSettingError
from unreel.core.server_keys import (
    HOSTS_VARIABLE,
    OWN_KEY,
    ServerAddress,
    find_server_key_variable,
    parse_server_url,
    require_encrypted_connection,
)
from unreel.core.settings import read_secret_variable
from unreel.reviewers.endpoint.model_address import PROVIDERS, is_server_model, parse_model_address

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

    Raise `InvalidSettingError` if no running server offers one.
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
    server: tuple[str, int],
    path: str,
    body: Mapping[str, str] | None = None,
    *,
    seconds: float = _TIMEOUT_S,
) -> dict[str, Any]:
    connection = HTTPConnection(*server, timeout=seconds)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEndpoint:
    """Server of a model, and the name of the environment variable with its API key; never the key."""

    name: str
    server: ServerAddress
    variable: str | None
    remark: str = ""
    """Reason why an existing API key is not sent, or note that the variable to be sent is not set."""

    @property
    def key_words(self) -> str:
        """Describe the source of the API key, for the message about a rejected key."""
        if self.variable is None:
            return f"asked without a key: {self.remark}" if self.remark else "asked without a key"
        if not read_secret_variable(self.variable):
            return f"asked without a key: {self.variable} is not set here"
        return f"asked with the key in {self.variable}"

    def read_key(self) -> str | None:
        """Read the API key of this server from the environment; return `None` if it is not set."""
        return None if self.variable is None else read_secret_variable(self.variable)

    def __str__(self) -> str:
        clear = "" if self.server.keeps_secrets else " in clear"
        key = "without a key" if self.variable is None else f"with {self.variable}"
        remark = f" ({self.remark})" if self.remark else ""
        return f"asks {self.server}{clear} as {self.name}, {key}{remark}"


def find_model_endpoint(
    model: str, *, key_hosts: str, environment: Mapping[str, str] | None = None
) -> ModelEndpoint:
    """Return the server of `model`, and the environment variable of its API key.

    `key_hosts` is the setting of that name: the hosts that may receive `OWN_KEY`. Raise
    `InvalidSettingError` if the key would be sent unencrypted to another machine, or a provider
    that requires a key has none.
    """
    address = parse_model_address(model)
    provider, server = PROVIDERS[address.provider], address.server
    variable = provider.key_variable
    home = None if provider.base_url is None else parse_server_url(provider.base_url)
    if server != home:
        named = find_server_key_variable(server, key_hosts)
        variable = variable if home is None and named == OWN_KEY else named
    if provider.needs_key and home in {server, None}:
        if variable is None:
            raise InvalidSettingError(
                HOSTS_VARIABLE,
                f"{server} is not named there, so {provider.key_variable} stays here",
                f"Set {HOSTS_VARIABLE}={server}",
            )
        if not read_secret_variable(variable, environment):
            raise InvalidSettingError(
                variable,
                f"not set, and {server} requires a key",
                f"Run `export {variable}=...` with your key, then the same command again",
            )
    remark, usual = "", provider.key_variable
    if variable is not None:
        require_encrypted_connection(server, variable)
        if not read_secret_variable(variable, environment):
            remark = "which is not set here"
    elif home is not None and usual is not None and read_secret_variable(usual, environment):
        remark = f"{usual} goes to {home} only"
    elif read_secret_variable(OWN_KEY, environment):
        remark = f"{OWN_KEY} goes only to hosts that {HOSTS_VARIABLE} names"
    return ModelEndpoint(name=address.name, server=server, variable=variable, remark=remark)


def list_model_endpoints(models: Iterable[str], *, key_hosts: str) -> tuple[ModelEndpoint, ...]:
    """Return the endpoints of those `models` that are behind a server, without duplicates."""
    served = filter(is_server_model, models)
    return tuple(dict.fromkeys(find_model_endpoint(model, key_hosts=key_hosts) for model in served))


_KNOCK_S = 3.0


def is_server_listening(server: ServerAddress) -> bool:
    """Return whether a local server accepts connections; remote hosts are not tested."""
    if not server.is_loopback:
        return True
    try:
        socket.create_connection((server.host, server.port), _KNOCK_S).close()
    except OSError:
        return False
    return True


def require_server_listening(endpoint: ModelEndpoint) -> None:
    """Raise `InvalidSettingError` if the model's local server does not accept connections."""
    if not is_server_listening(endpoint.server):
        raise InvalidSettingError(
            "model",
            f"nothing listens at {endpoint.server} for {endpoint.name}",
            "Start the server, or write its address: provider/name@http://host:port/v1. "
            "`unreel doctor` shows which ones answer",
        )


def list_server_models(base_url: str) -> tuple[str, ...]:
    """Return up to 20 names that a local server lists, or none; the request has no API key."""
    address = urlsplit(base_url)
    server = (address.hostname or "", address.port or HTTP_PORT)
    listed = _request_json(server, f"{address.path}/models", seconds=_KNOCK_S)
    names = [entry["id"] for entry in _get_list(listed.get("data")) if "id" in entry]
    return tuple(str(name)[:200] for name in names[:_MAX_MODELS])
