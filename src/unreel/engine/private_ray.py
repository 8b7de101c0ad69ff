"""Private Ray cluster: loopback only, its own token, private files.

Ray runs any code that a client sends. By default it listens on every interface, stores its token in
a file that all users of the machine may read, and its files in a folder that all may write to.
"""

import logging
import re
import secrets
import signal
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from tempfile import TemporaryDirectory
from typing import Any

import ray
import ray.exceptions

from unreel.core.errors import InvalidSettingError, format_library_error
from unreel.core.settings import override_environment, read_ray_address

_TOKEN_BYTES = 32
_CLIENT = "ray://"
_UNKNOWN = re.compile("InvalidAuthToken|AuthenticationError|[Aa]uthentication token")
# Internal modules of Ray without types; the release is pinned, and a test checks their effect.
_RAYLET: Any = import_module("ray._raylet")
_CONSTANTS: Any = import_module("ray._private.ray_constants")
_UTILS: Any = import_module("ray._common.utils")


@contextmanager
def connect_to_ray() -> Iterator[None]:
    """Join the Ray cluster at `RAY_ADDRESS` for the `with` block; if unset, start a private Ray instance.

    The joined cluster keeps the configuration of its owner. A private instance is stopped at the
    end of the block. Raise `InvalidSettingError` if the cluster cannot be joined from this machine.
    """
    address = read_ray_address()
    if address:
        _join_ray_cluster(address)
        try:
            yield
        finally:
            ray.shutdown()
    else:
        with _run_private_ray():
            yield


def _join_ray_cluster(address: str) -> None:
    setting = "RAY_ADDRESS"
    if address.startswith(_CLIENT):
        raise InvalidSettingError(
            setting,
            f"{address} is a Ray Client address, for drivers outside the cluster",
            "Run on a node of the cluster, with RAY_ADDRESS=auto or HOST:PORT of its head",
        )
    try:
        _start_ray()
    except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        lines: list[str] = []
        cause: BaseException | None = error
        while cause is not None:
            lines.append(f"{type(cause).__name__}: {cause}")
            cause = cause.__cause__ or cause.__context__
        messages = "\n".join(lines)
        problem = f"cannot join the Ray cluster at {address}: {format_library_error(error)}"
        remedy = "Check that its head is up, and that `ray start --address` ran on this machine"
        if _UNKNOWN.search(messages):
            problem = f"the Ray cluster at {address} does not know this driver's token"
            remedy = (
                "Set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH to the token "
                "that its nodes were started with"
            )
        raise InvalidSettingError(setting, problem, remedy) from error


@contextmanager
def _run_private_ray() -> Iterator[None]:
    token = secrets.token_hex(_TOKEN_BYTES)
    parent = _UTILS.get_default_system_temp_dir()
    with TemporaryDirectory(prefix="ray-", dir=parent, ignore_cleanup_errors=True) as folder:
        try:
            # Ray's processes inherit the token, and this process caches it.
            variables = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": token}
            with override_environment(variables), _force_loopback_address():
                _reload_ray_authentication()
                # A subfolder, because Ray makes the given folder accessible to all users.
                _start_ray(address="local", _temp_dir=f"{folder}/r")
            yield
        finally:
            ray.shutdown()
            _reload_ray_authentication()


def _start_ray(**options: Any) -> None:
    with _preserve_sigterm_handler(), warnings.catch_warnings():
        # Lance warns of every fork, but Ray's are followed by an exec at once.
        warnings.filterwarnings("ignore", "lance is not fork-safe", UserWarning)
        ray.init(
            include_dashboard=False, log_to_driver=False, logging_level=logging.WARNING, **options
        )
    logging.getLogger("ray.data").setLevel(logging.ERROR)


@contextmanager
def _preserve_sigterm_handler() -> Iterator[None]:
    """Restore the caller's SIGTERM handler: that of Ray ends the process before its last commit."""
    handler = signal.getsignal(signal.SIGTERM)
    yield
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, handler)


@contextmanager
def _force_loopback_address() -> Iterator[None]:
    """Make Ray use 127.0.0.1; it converts one given as `_node_ip_address` to a reachable one."""
    before = _CONSTANTS.ENABLE_RAY_CLUSTER
    _CONSTANTS.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        _CONSTANTS.ENABLE_RAY_CLUSTER = before


def _reload_ray_authentication() -> None:
    """Make Ray read its token and authentication mode again; Ray reads them only once per process."""
    _RAYLET.Config.initialize("")
    _RAYLET.AuthenticationTokenLoader.instance().reset_cache()
