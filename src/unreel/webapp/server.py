"""Server of one web application in this process."""

import asyncio
from collections.abc import Callable
from typing import Any

import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol

_IDLE_S = 15.0
"""Time in seconds after which a connection that is twice found between the same two requests is closed."""


class IdleTimeoutProtocol(AutoHTTPProtocol):  # type: ignore[misc,valid-type]  # a variable of uvicorn
    """HTTP protocol of uvicorn that also closes connections whose request does not begin or has no end of headers."""

    def connection_made(self, transport: Any) -> None:
        """Start to look at the connection."""
        super().connection_made(transport)
        asyncio.get_running_loop().call_later(_IDLE_S, self._close_if_idle, self)

    def _close_if_idle(self, before: object) -> None:
        is_idle = self.cycle is None or self.cycle.response_complete
        if is_idle and self.cycle is before:
            self.transport.close()
        elif not self.transport.is_closing():
            at_next = self.cycle if is_idle else self
            asyncio.get_running_loop().call_later(_IDLE_S, self._close_if_idle, at_next)


def run_app(
    app: Any, *, host: str, port: int, on_start: Callable[[str], None], stop_s: int
) -> None:
    """Serve an application until SIGTERM or Ctrl-C; requests that run have `stop_s` seconds to end."""
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        http=IdleTimeoutProtocol,
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        ws="none",
        timeout_graceful_shutdown=stop_s,
    )
    listener = config.bind_socket()
    listener.listen(config.backlog)
    name, bound_port = listener.getsockname()[:2]
    on_start(f"http://[{name}]:{bound_port}" if ":" in name else f"http://{name}:{bound_port}")
    uvicorn.Server(config).run(sockets=[listener])
