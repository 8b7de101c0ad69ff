"""Check whether a local server listens and which models it offers, before a question is sent."""

import json
import socket
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from typing import Final
from urllib.parse import urlsplit

from unreel.core.errors import InvalidSettingError
from unreel.core.server_keys import ServerAddress
from unreel.reviewers.endpoint.keys import ModelEndpoint

_KNOCK_S: Final = 3.0
_MOST_BYTES: Final = 1 << 20
_MOST_MODELS: Final = 20


def is_listening(server: ServerAddress) -> bool:
    """Return whether a local server accepts connections; remote hosts are not tested."""
    if not server.is_loopback:
        return True
    try:
        socket.create_connection((server.host, server.port), _KNOCK_S).close()
    except OSError:
        return False
    return True


def require_listening(contact: ModelEndpoint) -> None:
    """Raise for a model of this machine whose server is not there, before its questions wait for it.

    Raises:
        InvalidSettingError: Nothing listens.
    """
    if not is_listening(contact.server):
        setting, problem = "model", f"nothing listens at {contact.server} for {contact.name}"
        remedy = "Start the server, or write its address: provider/name@http://host:port/v1. "
        raise InvalidSettingError(
            setting, problem, remedy + "`unreel doctor` shows which ones answer"
        )


def offered_models(base_url: str) -> tuple[str, ...]:
    """Return the first models that a local server lists without a key; empty if it lists none.

    At most 20 models are returned.
    """
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
