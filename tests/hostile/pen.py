"""Runs `unreel` hundreds of times at little cost: a process that has loaded it forks for each command.

Started as `python pen.py`; reads a JSON object a line (`argv`, `cwd`), answers with one (`status`,
`peak_mb`, `seconds`). What a command prints goes to the files `out` and `err` of its `cwd`.
"""

import json
import os
import resource
import signal
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

LOADED = (
    "av",
    "lance",
    "pyarrow.parquet",
    "scipy.stats",
    "unreel.cli.curate.curate_job",
    "unreel.cli.evaluation.eval_job",
    "unreel.cli.evaluation.runs_job",
    "unreel.cli.evaluation.report",
    "unreel.cli.evaluation.score_job",
    "unreel.media.sandbox",
    "unreel.report.site",
)
MOST_SECONDS = 60
_CEILING_BYTES = 6 * 2**30
"""What would take more is measured as that much, and the machine stays up."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended, what it took, and what it said."""

    status: int
    peak_mb: float
    seconds: float
    out: str
    err: str


class Pen:
    """Commands in processes of their own, one at a time; use it as a context."""

    def __enter__(self) -> Self:
        self._server = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.communicate()

    def run(self, *argv: object, cwd: Path) -> Ended:
        """`unreel ARGV` in the folder `cwd`."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps({"argv": [*map(str, argv)], "cwd": str(cwd)}) + "\n")
        self._server.stdin.flush()
        told = json.loads(self._server.stdout.readline())
        said = {name: (cwd / name).read_text(errors="backslashreplace") for name in ("out", "err")}
        return Ended(**told, **said)


def _serve() -> None:
    for name in LOADED:
        __import__(name)
    warnings.filterwarnings("ignore", "lance is not fork-safe")
    for line in sys.stdin:
        asked = json.loads(line)
        started = time.monotonic()
        child = os.fork()
        if child == 0:
            _live(asked["argv"], Path(asked["cwd"]))
        status, used = _wait(child, started + MOST_SECONDS)
        told = {
            "status": status,
            "peak_mb": used.ru_maxrss / 1024,
            "seconds": time.monotonic() - started,
        }
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()


def _wait(child: int, deadline: float) -> tuple[int, resource.struct_rusage]:
    while time.monotonic() < deadline:
        ended, status, used = os.wait4(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status), used
        time.sleep(0.005)
    os.killpg(child, signal.SIGKILL)
    _, status, used = os.wait4(child, 0)
    return os.waitstatus_to_exitcode(status), used


def _live(argv: Sequence[str], cwd: Path) -> None:
    status = 1
    try:
        os.setpgid(0, 0)
        os.chdir(cwd)
        for descriptor, name in ((1, "out"), (2, "err")):
            file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            os.dup2(file, descriptor)
        os.close(0)
        os.open(os.devnull, os.O_RDONLY)
        resource.setrlimit(resource.RLIMIT_DATA, (_CEILING_BYTES, _CEILING_BYTES))
        from unreel.cli.main import main

        sys.argv = ["unreel", *argv]
        main()
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001  printed as the interpreter would
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    _serve()
