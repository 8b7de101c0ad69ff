"""A stage whose work is done by a child process, as decoding is: what a killed child leaves."""

import os
import subprocess
import sys
import threading
from pathlib import Path

from unreel.core.content_ids import digest
from unreel.core.errors import MediaError
from unreel.core.failure import Failure, FailureReason
from unreel.engine.stage import Row, Stage, WorkerResources

CHILD = """
import hashlib, os, sys, time
for line in sys.stdin:
    key = line.strip()
    log = os.open(sys.argv[1] + "/asks.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.write(log, f"{key} {os.getpid()}\\n".encode())
    os.close(log)
    while os.path.exists(sys.argv[1] + "/hold/" + key):
        time.sleep(0.005)
    print("done", flush=True)
"""


class Confined(Stage):
    """Each thread keeps one child; a child that dies gives a failure row and a new child."""

    resources = WorkerResources(in_flight=2)

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def setup(self) -> None:
        self._own = threading.local()

    def __call__(self, row: Row) -> Row:
        child = self._child()
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            child.stdin.write(row["key"] + "\n")
            child.stdin.flush()
            answered = child.stdout.readline()
        except BrokenPipeError:
            answered = ""
        if not answered:
            del self._own.child
            detail = f"the child ended with {child.wait()}"
            raise MediaError(Failure(FailureReason.WORKER_DIED, detail))
        return row | {"text": digest("answer", row["key"])}

    def _child(self) -> subprocess.Popen[str]:
        if not hasattr(self._own, "child"):
            self._own.child = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", CHILD, os.fspath(self._folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        child: subprocess.Popen[str] = self._own.child
        return child
