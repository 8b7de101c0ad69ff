"""Runs `unreel` in forks of one process that has loaded what commands load, so that no test pays for that again.

A command has a process of its own, with the folder, environment and exit code that a shell would give it. What
a start loads and how long it takes is tried by tests that start an interpreter each time.
"""

import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

_LOADED = (
    "av",
    "filelock",  # like httpx2, tqdm and yaml, of huggingface_hub, which reads the environment when it is loaded
    "httpx2",
    "pandas",  # Lance loads it where it is installed
    "pyarrow.dataset",
    "rapidocr.main",
    "scipy.ndimage",
    "tqdm.auto",
    "unreel.annotation.campaign_state",
    "unreel.annotation.ledger.connection",
    "unreel.benchmarks.loader",
    "unreel.cli.main",
    "unreel.engine.clip_facts",
    "unreel.engine.run",
    "unreel.evaluation.run_job",
    "unreel.evaluation.review",
    "unreel.evaluation.scored_columns",
    "unreel.asking.answer_table",
    "unreel.media.reader",
    "unreel.protocols.label_claim_parser",
    "unreel.report.boards.charts",
    "unreel.report.clips.clip_files",
    "unreel.reviewers.endpoint.reviewer",
    "unreel.stats.paired_differences",
    "yaml",
)
"""Whatever of these an environment has; nothing that loads Lance, whose threads a fork would lose."""
_MOST_BYTES = 2**20
"""Of a request: arguments and environment."""
_PROGRAM = """#!{python} -IS
import json, os, socket, sys
request = {{"typed": sys.argv[1:], "cwd": os.getcwd(), "environment": dict(os.environ)}}
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as channel:
    channel.connect({address!r})
    socket.send_fds(channel, [json.dumps(request).encode()], [0, 1, 2])
    sys.exit(int(channel.recv(64) or 1))
"""


class Warm:
    """Starts commands in the process behind `address`."""

    def __init__(self, address: str) -> None:
        self._address = address

    def run(
        self, *arguments: object, cwd: Path, environment: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """One command to its end, with the environment as it is now unless another is given."""
        typed = list(map(str, arguments))
        inherited = os.environ if environment is None else environment  # noqa: TID251
        asked = {"typed": typed, "cwd": str(cwd), "environment": dict(inherited)}
        with (
            Path(os.devnull).open() as nothing,
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
        ):
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as channel:
                channel.connect(self._address)
                files = [nothing.fileno(), out.fileno(), err.fileno()]
                socket.send_fds(channel, [json.dumps(asked).encode()], files)
                told = channel.recv(64)
            assert told, "the process that starts commands died"
            out.seek(0)
            err.seek(0)
            return subprocess.CompletedProcess(
                ["unreel", *typed], int(told), out.read().decode(), err.read().decode()
            )

    def write_program(self, folder: Path) -> Path:
        """Write a program `unreel` into `folder` that runs each command in a fork, for shells to call."""
        program = folder / "unreel"
        program.write_text(_PROGRAM.format(python=sys.executable, address=self._address))
        program.chmod(0o755)
        return program


@contextmanager
def warm_process(folder: Path) -> Iterator[Warm]:
    """The process that starts commands, for as long as the block lasts."""
    address = str(folder / "warm")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(address)
        listener.listen()
        command = [sys.executable, __file__, str(listener.fileno())]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, pass_fds=[listener.fileno()]
        ) as process:
            assert process.stdin is not None
            yield Warm(address)
            process.stdin.close()


def _load() -> None:
    for name in _LOADED:
        try:
            importlib.import_module(name)
        except ImportError:
            continue
    gc.freeze()


def _serve(listener: socket.socket) -> None:
    """Start what is asked for until nobody can ask any more; a command returns from here to be one."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while listener in select.select([listener, sys.stdin], [], [])[0]:
        channel, _ = listener.accept()
        if os.fork():
            channel.close()
            continue
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        listener.close()
        request, files, _, _ = socket.recv_fds(channel, _MOST_BYTES, 3)
        if (command := os.fork()) == 0:
            channel.close()
            _become(json.loads(request), files)
            return
        code = os.waitstatus_to_exitcode(os.waitpid(command, 0)[1])
        channel.send(str(code).encode())
        os._exit(0)
    os._exit(0)


def _become(asked: dict, files: list[int]) -> None:
    for place, file in enumerate(files):
        os.dup2(file, place)
        os.close(file)
    # The streams of the forked process know whether their old files could seek.
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    os.chdir(asked["cwd"])
    os.environ.clear()  # noqa: TID251  of a command that begins
    os.environ.update(asked["environment"])  # noqa: TID251
    sys.argv[1:] = asked["typed"]
    sys.path[0] = ""


if __name__ == "__main__":
    _load()
    _serve(socket.socket(fileno=int(sys.argv[1])))
    from unreel.cli.main import main

    sys.argv[0] = "-c"
    main()
