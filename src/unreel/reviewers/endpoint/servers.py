"""Servers of models: URL and API key of requests, and a check whether a local server listens.

A recipe may come from a stranger and may contain any server URL. So a URL alone never
gets a key: the environment defines the key, and the environment defines the hosts that get it.
"""

import json
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
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
from unreel.reviewers.endpoint.model_address import (
    PROVIDERS,
    ModelProvider,
    is_server_model,
    parse_model_address,
)


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

    `key_hosts` is the setting of that name: the hosts that may receive `OWN_KEY`.

    Raises:
        InvalidSettingError: The key would be sent unencrypted to another machine, or a provider
            that requires a key has none.
    """
    address = parse_model_address(model)
    provider, server = PROVIDERS[address.provider], address.server
    variable, home = (
        provider.key_variable,
        (None if provider.base_url is None else parse_server_url(provider.base_url)),
    )
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
    if variable is None:
        remark = _explain_withheld_key(provider, home, environment)
    else:
        require_encrypted_connection(server, variable)
        remark = "" if read_secret_variable(variable, environment) else "which is not set here"
    return ModelEndpoint(name=address.name, server=server, variable=variable, remark=remark)


def list_model_endpoints(models: Iterable[str], *, key_hosts: str) -> tuple[ModelEndpoint, ...]:
    """Return the endpoints of those `models` that are behind a server, without duplicates."""
    served = filter(is_server_model, models)
    return tuple(dict.fromkeys(find_model_endpoint(model, key_hosts=key_hosts) for model in served))


def _explain_withheld_key(
    provider: ModelProvider, address: ServerAddress | None, environment: Mapping[str, str] | None
) -> str:
    variable = provider.key_variable
    if address is not None and variable is not None and read_secret_variable(variable, environment):
        return f"{variable} goes to {address} only"
    if read_secret_variable(OWN_KEY, environment):
        return f"{OWN_KEY} goes only to hosts that {HOSTS_VARIABLE} names"
    return ""


_KNOCK_S = 3.0
_MOST_BYTES = 1 << 20
_MOST_MODELS = 20


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
    connection = HTTPConnection(address.hostname or "", address.port, timeout=_KNOCK_S)
    try:
        connection.request("GET", f"{address.path}/models", headers={"Accept": "application/json"})
        reply = connection.getresponse()
        listed = json.loads(reply.read(_MOST_BYTES)) if reply.status == HTTPStatus.OK else {}
        names = [entry["id"] for entry in listed["data"]]
    except (OSError, HTTPException, ValueError, LookupError, TypeError, RecursionError):
        return ()
    finally:
        connection.close()
    return tuple(str(name)[:200] for name in names[:_MOST_MODELS])
