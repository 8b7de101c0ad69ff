"""Where models live: `provider/name`, or `provider/name@http://host:port/v1` for a server of one's own."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Final, Literal

from unreel.core.errors import InvalidSettingError, UnknownNameError

OWN_KEY: Final = "OPENAI_COMPATIBLE_API_KEY"
"""Variable of the key for a server of one's own, at an address that a model's name gives."""
LOCAL: Final = "local/"
"""Before the folder of a model that runs on this machine: it is no provider, and nobody is contacted."""
HOST: Final = r"[a-z0-9](?:[a-z0-9._-]*[a-z0-9_.])?|\[[0-9a-f:.]+\]"
PORT: Final = r"[0-9]{1,5}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A server that speaks the OpenAI chat protocol."""

    base_url: str | None
    """`None` where the user must give the address."""
    key_variable: str | None
    """Environment variable of the key; `None` where none is needed."""
    needs_key: bool = True
    """Whether nobody is answered without one. A server of one's own may be open."""
    length_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"


PROVIDERS: Final[Mapping[str, Provider]] = {
    "openai": Provider(
        base_url="https://api.openai.com/v1",
        key_variable="OPENAI_API_KEY",
        length_field="max_completion_tokens",
    ),
    "anthropic": Provider(
        base_url="https://api.anthropic.com/v1", key_variable="ANTHROPIC_API_KEY"
    ),
    "azure": Provider(
        base_url=None,
        key_variable="AZURE_OPENAI_API_KEY",
        length_field="max_completion_tokens",
    ),
    "openrouter": Provider(
        base_url="https://openrouter.ai/api/v1", key_variable="OPENROUTER_API_KEY"
    ),
    "google": Provider(
        base_url="https://generativelanguage.googleapis.com/v1beta/openai",
        key_variable="GEMINI_API_KEY",
    ),
    "together": Provider(base_url="https://api.together.xyz/v1", key_variable="TOGETHER_API_KEY"),
    "dashscope": Provider(
        base_url="https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        key_variable="DASHSCOPE_API_KEY",
    ),
    "vllm": Provider(
        base_url="http://127.0.0.1:8000/v1", key_variable="VLLM_API_KEY", needs_key=False
    ),
    "sglang": Provider(base_url="http://127.0.0.1:30000/v1", key_variable=None, needs_key=False),
    "ollama": Provider(base_url="http://127.0.0.1:11434/v1", key_variable=None, needs_key=False),
    "lmstudio": Provider(base_url="http://127.0.0.1:1234/v1", key_variable=None, needs_key=False),
    "compatible": Provider(base_url=None, key_variable=OWN_KEY, needs_key=False),
}
_FORM: Final = re.compile(r"(?P<provider>[a-z]+)/(?P<model>[^@\s]+)(@(?P<url>https?://[^\s@]+))?")
# Narrower than what URLs may be, so that no two readers of one can differ about its host.
_URL: Final = re.compile(
    rf"(?P<scheme>https?)://(?P<host>{HOST})(:(?P<port>{PORT}))?"
    r"(?P<path>(/[a-z0-9._~!$&'()*+,;=:%-]*)*)",
    re.ASCII | re.IGNORECASE,
)
_PORTS: Final = {"http": 80, "https": 443}
_LAST_PORT: Final = 65535


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A place in the network, as exactly as a key is bound to it."""

    scheme: str
    host: str
    """In lower case; an address of IPv6 in its short spelling, without brackets."""
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether it is this machine, in a spelling that no resolver has a say in but `localhost`."""
        if ":" in self.host:
            return IPv6Address(self.host) == IPv6Address("::1")
        try:
            return IPv4Address(self.host).is_loopback
        except AddressValueError:
            return self.host == "localhost"

    @property
    def keeps_secrets(self) -> bool:
        """Whether nobody on the way can read along."""
        return self.scheme == "https" or self.is_loopback

    @property
    def uses_usual_port(self) -> bool:
        """Whether its port goes without saying."""
        return self.port == _PORTS[self.scheme]

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.uses_usual_port else f"{host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A model at its server."""

    provider: str
    model: str
    base_url: str

    @property
    def name(self) -> str:
        """`provider/model`: where the server runs is no part of who judges."""
        return f"{self.provider}/{self.model}"

    @property
    def server(self) -> Server:
        """Who is asked."""
        return read_server(self.base_url)


def names_server(model: str) -> bool:
    """Whether `model` names one behind a server."""
    return "/" in model and not model.startswith(LOCAL)


def read_address(text: str) -> Address:
    """The model that `text` names, for example `openai/gpt-5` or `vllm/tiny@http://127.0.0.1:8000/v1`."""
    found = _FORM.fullmatch(text)
    if found is None:
        remedy = "Write provider/name, or provider/name@http://host:port/v1 (no user or password)"
        setting = "model"
        shown = text.partition("@")[0]  # an address may hold a password
        raise InvalidSettingError(setting, f"cannot read {shown!r}", remedy)
    provider = PROVIDERS.get(found["provider"])
    if provider is None:
        kind = "provider"
        raise UnknownNameError(kind, found["provider"], sorted(PROVIDERS))
    base_url = found["url"] or provider.base_url
    if base_url is None:
        remedy = f"Write {found['provider']}/{found['model']}@http://host:port/v1"
        setting = "model"
        raise InvalidSettingError(setting, f"{text!r} has no address", remedy)
    read_server(base_url)
    return Address(provider=found["provider"], model=found["model"], base_url=base_url)


def read_server(url: str) -> Server:
    """The server in `url`; anything but scheme, plain host, port and path is refused."""
    found = _URL.fullmatch(url)
    if found is not None:
        host, port = read_host(found["host"]), int(found["port"] or _PORTS[found["scheme"]])
        if host is not None and 0 < port <= _LAST_PORT:
            return Server(scheme=found["scheme"], host=host, port=port)
    setting, problem = "model", "its address is not scheme, host, port and path in plain letters"
    remedy = "Write http://host:port/v1, and a host that has other letters in its xn-- form"
    raise InvalidSettingError(setting, problem, remedy)


def read_host(text: str) -> str | None:
    """The one spelling of a host, or None where it is none."""
    if not text.startswith("["):
        return text.lower()
    try:
        return str(IPv6Address(text[1:-1]))
    except AddressValueError:
        return None
