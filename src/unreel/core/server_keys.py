"""URLs of servers, and the keys that each may receive, as configured in the environment.

A recipe, and its URL, may be untrusted. So a server never receives a key because of its URL alone:
`UNREEL_KEY_HOSTS` names the hosts that may receive a key, and the variable of the key.
"""

import re
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address

from unreel.core.errors import InvalidSettingError

HOSTS_VARIABLE = "UNREEL_KEY_HOSTS"
OWN_KEY = "OPENAI_COMPATIBLE_API_KEY"
"""Variable of the key for a custom server if `UNREEL_KEY_HOSTS` names no other variable."""
_HOST = r"[a-z0-9](?:[a-z0-9._-]*[a-z0-9_.])?|\[[0-9a-f:.]+\]"
_PORT = r"[0-9]{1,5}"
# Stricter than the URL standard, so that all parsers find the same host in a URL.
_URL = re.compile(
    rf"(?P<scheme>https?)://(?P<host>{_HOST})(:(?P<port>{_PORT}))?"
    r"(?P<path>(/[a-z0-9._~!$&'()*+,;=:%-]*)*)",
    re.ASCII | re.IGNORECASE,
)
_AT_SERVER = re.compile(r"@https?://[^\s,;)'\"]+", re.IGNORECASE)
_WRITTEN = re.compile(
    r"https?://[^\s,;)'\"]+|\b(?:localhost|\d{1,3}(?:\.\d{1,3}){3}):\d+|\[[0-9a-f:.]+\]:\d+",
    re.IGNORECASE,
)
_PORTS = {"http": 80, "https": 443}
_LAST_PORT = 65535
_NAMED = re.compile(
    rf"(?P<host>{_HOST})(:(?P<port>{_PORT}))?(=(?P<variable>[A-Za-z_][A-Za-z0-9_]*))?",
    re.ASCII | re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAddress:
    """Scheme, host and port of a server, to which an API key is bound."""

    scheme: str
    host: str
    """Host in lower case; an IPv6 address is in its short form, without brackets."""
    port: int

    @property
    def is_loopback(self) -> bool:
        """Return whether the host is loopback, by an address or the name `localhost`."""
        if ":" in self.host:
            return IPv6Address(self.host) == IPv6Address("::1")
        try:
            return IPv4Address(self.host).is_loopback
        except AddressValueError:
            return self.host == "localhost"

    @property
    def keeps_secrets(self) -> bool:
        """Return whether the connection is encrypted or local."""
        return self.scheme == "https" or self.is_loopback

    @property
    def uses_usual_port(self) -> bool:
        """Return whether its port is the default of the scheme."""
        return self.port == _PORTS[self.scheme]

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.uses_usual_port else f"{host}:{self.port}"


def remove_server_from_model_name(name: str) -> str:
    """Return the name of a model without its server: `vllm/good` for `vllm/good@http://host:8000/v1`."""
    return _AT_SERVER.sub("", name)


def hide_server_addresses(text: str) -> str:
    """Return `text` for publication: without model servers, and with `[address]` for other addresses."""
    return _WRITTEN.sub("[address]", remove_server_from_model_name(text))


def parse_server_url(url: str) -> ServerAddress:
    """Parse the server address in `url`; reject anything except scheme, plain host, port and path."""
    match = _URL.fullmatch(url)
    if match is not None:
        host, port = normalise_host(match["host"]), int(match["port"] or _PORTS[match["scheme"]])
        if host is not None and 0 < port <= _LAST_PORT:
            return ServerAddress(scheme=match["scheme"], host=host, port=port)
    raise InvalidSettingError(
        "model",
        "the address is not scheme, host, port and path in plain letters",
        "Write http://host:port/v1, and a host that has other letters in its xn-- form",
    )


def normalise_host(text: str) -> str | None:
    """Return the normalised spelling of a host; `None` if the host is invalid."""
    if not text.startswith("["):
        return text.lower()
    try:
        return str(IPv6Address(text[1:-1]))
    except AddressValueError:
        return None


def find_server_key_variable(server: ServerAddress, key_hosts: str) -> str | None:
    """Return the variable whose key may be sent to `server`; `None` if `key_hosts` omits the server.

    `key_hosts` is the setting of that name. Raise `InvalidSettingError` if the setting cannot be
    parsed.
    """
    for entry in filter(None, (part.strip() for part in key_hosts.split(","))):
        match = _NAMED.fullmatch(entry)
        host = None if match is None else normalise_host(match["host"])
        if match is None or host is None:
            raise InvalidSettingError(
                HOSTS_VARIABLE,
                f"cannot use {entry!r}",
                "Write hosts as llm.example.org, 127.0.0.1:8000 or api.example.org=ITS_KEY, with commas between",
            )
        port = match["port"]
        meant = server.uses_usual_port if port is None else server.port == int(port)
        if host == server.host and meant:
            return match["variable"] or OWN_KEY
    return None


def require_encrypted_connection(server: ServerAddress, variable: str) -> None:
    """Raise if a key would be sent to `server` unencrypted.

    Raise `InvalidSettingError` if the connection is neither HTTPS nor local.
    """
    if not server.keeps_secrets:
        raise InvalidSettingError(
            "model",
            f"the key in {variable} would be sent to {server} in clear",
            f"Write https://, tunnel it to 127.0.0.1, or take it out of {HOSTS_VARIABLE}",
        )
