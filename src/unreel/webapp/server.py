"""Server of one web application in this process."""

from collections.abc import Callable
from typing import Any

import uvicorn


def run_app(
    app: Any, *, host: str, port: int, on_start: Callable[[str], None], stop_s: int
) -> None:
    """Serve an application until SIGTERM or Ctrl-C; requests that run have `stop_s` seconds to end."""
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
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
