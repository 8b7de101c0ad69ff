"""Choose the key of a request: a provider's key for its own server, your key for hosts you named.

A recipe may come from a stranger and may contain any server address. So an address alone never
gets a key: the environment defines the key, and the environment defines the hosts that get it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from unreel.core.errors import InvalidSettingError
from unreel.core.server_keys import (
    HOSTS_VARIABLE,
    OWN_KEY,
    ServerAddress,
    key_variable,
    read_server,
    require_secret_way,
)
from unreel.core.settings import read_secret
from unreel.reviewers.endpoint.providers import PROVIDERS, ModelProvider, names_server, read_address


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEndpoint:
    """URL of a model, and the variable of its key. Never contains the key."""

    name: str
    server: ServerAddress
    variable: str | None
    remark: str = ""
    """Why a key that is there stays here, or that the one which would go is not there."""

    @property
    def key_words(self) -> str:
        """Return a description of the key, for the message about a rejected key."""
        if self.variable is None:
            return f"asked without a key: {self.remark}" if self.remark else "asked without a key"
        if not read_secret(self.variable):
            return f"asked without a key: {self.variable} is not set here"
        return f"asked with the key in {self.variable}"

    def read_key(self) -> str | None:
        """Return the key for this server from the environment; `None` if it has no key."""
        return None if self.variable is None else read_secret(self.variable)

    def __str__(self) -> str:
        clear = "" if self.server.keeps_secrets else " in clear"
        key = "without a key" if self.variable is None else f"with {self.variable}"
        remark = f" ({self.remark})" if self.remark else ""
        return f"asks {self.server}{clear} as {self.name}, {key}{remark}"


def find_model_endpoint(
    model: str, *, key_hosts: str, environment: Mapping[str, str] | None = None
) -> ModelEndpoint:
    """Return the server of `model`, and the variable of its key.

    `key_hosts` is the setting of that name: the hosts that may receive `OWN_KEY`.

    Raises:
        InvalidSettingError: A key would be sent in clear text to another machine, or a provider
            that requires a key has none.
    """
    address = read_address(model)
    provider, server = PROVIDERS[address.provider], address.server
    variable, home = provider.key_variable, _find_provider_address(provider)
    if server != home:
        named = key_variable(server, key_hosts)
        variable = variable if home is None and named == OWN_KEY else named
    if provider.needs_key and home in {server, None}:
        _require_key(provider, server, variable, environment)
    if variable is None:
        remark = _explain_withheld_key(provider, home, environment)
    else:
        require_secret_way(server, variable)
        remark = "" if read_secret(variable, environment) else "which is not set here"
    return ModelEndpoint(name=address.name, server=server, variable=variable, remark=remark)


def list_model_endpoints(models: Iterable[str], *, key_hosts: str) -> tuple[ModelEndpoint, ...]:
    """Return the endpoints of all `models` that run on a server, each once."""
    asked = filter(names_server, models)
    return tuple(dict.fromkeys(find_model_endpoint(model, key_hosts=key_hosts) for model in asked))


def _find_provider_address(provider: ModelProvider) -> ServerAddress | None:
    return None if provider.base_url is None else read_server(provider.base_url)


def _require_key(
    provider: ModelProvider,
    server: ServerAddress,
    variable: str | None,
    environment: Mapping[str, str] | None,
) -> None:
    if variable is None:
        problem = f"{server} is not named there, so {provider.key_variable} stays here"
        raise InvalidSettingError(HOSTS_VARIABLE, problem, f"Set {HOSTS_VARIABLE}={server}")
    if not read_secret(variable, environment):
        problem = f"not set, and {server} requires a key"
        remedy = f"Run `export {variable}=...` with your key, then the same command again"
        raise InvalidSettingError(variable, problem, remedy)


def _explain_withheld_key(
    provider: ModelProvider, home: ServerAddress | None, environment: Mapping[str, str] | None
) -> str:
    variable = provider.key_variable
    if home is not None and variable is not None and read_secret(variable, environment):
        return f"{variable} goes to {home} only"
    if read_secret(OWN_KEY, environment):
        return f"{OWN_KEY} goes only to hosts that {HOSTS_VARIABLE} names"
    return ""
