"""Start of the reward service: one process with uvicorn, or several replicas with Ray Serve."""

import socket
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from unreel.core.errors import InvalidSettingError
from unreel.core.managed_server import require_free_port
from unreel.core.registry import LazyImport
from unreel.core.server_keys import ServerAddress
from unreel.core.settings import override_environment
from unreel.rewards.service.app import create_reward_app
from unreel.rewards.service.settings import RewardServiceSettings

if TYPE_CHECKING:
    from ray.serve import Application, Deployment

_JOIN_RAY = LazyImport("unreel.engine.private_ray:connect_to_ray", "ray")
_DAY_S = 86_400
PROXY_TIMEOUTS = {
    "RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S": "60",
    "RAY_SERVE_PROXY_HEALTH_CHECK_TIMEOUT_S": "60",
}
"""Longer timeouts of Ray's proxy: Ray kills it after 5 s, and on a busy machine it starts more slowly."""
_START_S = 300
"""Timeout in seconds for the start; Ray itself raises after 60 s, although its proxy continues to start."""


def require_tokens_if_exposed(settings: RewardServiceSettings, host: str, port: int) -> None:
    """Require bearer tokens if other machines can reach the server, and a free port.

    Raises:
        InvalidSettingError: `host` is not a loopback address, and the settings have no tokens.
    """
    address = ServerAddress(scheme="http", host=host, port=port)
    if not settings.tokens and not address.is_loopback:
        raise InvalidSettingError(
            "--tokens",
            f"everyone who can reach {host} could query your models",
            "Give a file of tokens, or use --host 127.0.0.1",
        )
    if port:
        require_free_port(host, port)


def build_reward_application(args: dict[str, Any]) -> "Application":
    """Return the application that a configuration file of Ray Serve names as its `import_path`.

    Args:
        args: Values of `RewardServiceSettings`; `tokens` is required, as path of the file of tokens.
    """
    settings = TypeAdapter(RewardServiceSettings).validate_python(args)
    all_interfaces = "0.0.0.0"  # noqa: S104  the default of the configuration file
    require_tokens_if_exposed(settings, all_interfaces, 0)
    return _build_deployment(settings).bind()


def _build_deployment(settings: RewardServiceSettings) -> "Deployment":
    from ray import serve

    def build_app() -> Any:  # Ray calls only functions, not a `partial`
        return create_reward_app(settings)

    return serve.deployment(
        name="reward",
        max_ongoing_requests=settings.max_pending,
        graceful_shutdown_timeout_s=settings.deadline_s + 1,
        ray_actor_options={"num_cpus": 0},
    )(serve.ingress(build_app)())


def run_ray_replicas(
    settings: RewardServiceSettings,
    *,
    host: str,
    port: int,
    n_replicas: int,
    on_start: Callable[[str], None],
) -> None:
    """Run replicas of the reward service in a Ray cluster until SIGTERM or Ctrl-C.

    Ray replaces a replica that ends. Limits of tokens, rate and pending clips apply to each replica.
    """
    if not port:
        with socket.create_server((host, 0)) as listener:
            port = listener.getsockname()[1]
    with override_environment(PROXY_TIMEOUTS), _JOIN_RAY():
        from ray import serve

        application = _build_deployment(settings).options(num_replicas=n_replicas).bind()
        try:
            until_s = time.monotonic() + _START_S
            while True:
                try:
                    serve.start(http_options={"host": host, "port": port})
                    serve.run(application, name="unreel-reward")
                    break
                except TimeoutError:
                    if time.monotonic() > until_s:
                        raise
            on_start(f"http://{host}:{port}")
            while True:
                time.sleep(_DAY_S)
        finally:
            serve.shutdown()  # type: ignore[no-untyped-call]
