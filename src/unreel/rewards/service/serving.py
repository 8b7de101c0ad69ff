"""The service as one process with uvicorn."""

from collections.abc import Callable
from typing import Any

import uvicorn

from unreel.core.errors import InvalidSettingError
from unreel.core.managed_server import require_free
from unreel.core.server_keys import ServerAddress
from unreel.rewards.service.app import create_app
from unreel.rewards.service.settings import ServiceSettings


def require_tokens(settings: ServiceSettings, host: str, port: int) -> None:
    """Refuse to listen beyond this machine without tokens.

    Raises:
        InvalidSettingError: It would.
    """
    address = ServerAddress(scheme="http", host=host, port=port)
    if not settings.tokens and not address.is_loopback:
        setting, problem = "--tokens", f"everybody who reaches {host} could ask your models"
        raise InvalidSettingError(
            setting, problem, "Give a file of tokens, or use --host 127.0.0.1"
        )
    if port:
        require_free(host, port)


def run_process(
    settings: ServiceSettings, *, host: str, port: int, on_start: Callable[[str], None]
) -> None:
    """Serve in this process until SIGTERM or Ctrl-C, then finish the requests that run."""
    app, stop_s = create_app(settings), int(settings.deadline_s) + 1
    run_app(app, host=host, port=port, on_start=on_start, stop_s=stop_s)


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
        timeout_graceful_shutdown=stop_s,
    )
    _AnnouncedServer(config, on_start).run()


class _AnnouncedServer(uvicorn.Server):
    """Server that reports its address when it listens."""

    def __init__(self, config: uvicorn.Config, on_start: Callable[[str], None]) -> None:
        super().__init__(config)
        self._on_start = on_start

    async def startup(self, sockets: list[Any] | None = None) -> None:
        """Listen, then report the address."""
        await super().startup(sockets)
        for listener in self.servers:
            for sock in listener.sockets:
                name, port = sock.getsockname()[:2]
                shown = f"[{name}]" if ":" in name else name
                self._on_start(f"http://{shown}:{port}")
