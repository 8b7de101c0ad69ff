"""A suspect's own worker on this machine: a fresh process that runs one row and ends."""

import asyncio
import fcntl
import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Sequence
from multiprocessing import connection
from typing import Any, Final

from unreel.core.errors import InvalidValueError
from unreel.engine.crash_suspects import WorkerCrashed
from unreel.engine.stage import Row, Stage
from unreel.engine.stage_worker import StageChain

_BEGAN, _DONE = "began", "done"
_PEACE_S: Final = 10.0
"""How long a process that gave its row back may take to end."""


class IsolatedProcess:
    """Runs one row through stages in a process that is started for it; ends it when cancelled.

    The stages are copied when this is made, so make it before they are set up.

    Raises:
        InvalidValueError: A stage does not pickle.
    """

    def __init__(self, stages: Sequence[Stage]) -> None:
        try:
            self._stages = pickle.dumps(list(stages))
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            msg = (
                f"rows whose worker died run in a process of their own, and a stage cannot travel "
                f"there: {error}. Define it in a module, without open files in `__init__`"
            )
            raise InvalidValueError(msg) from error

    async def __call__(self, row: Row) -> Row | WorkerCrashed:
        """Run the row in a fresh process; return the finished row, or how the process crashed."""
        # Spawned, because a fork of a process with threads may stand still for ever.
        spawn = multiprocessing.get_context("spawn")
        ours, theirs = spawn.Pipe()
        process = spawn.Process(
            target=_run_stages_in_child, args=(theirs, self._stages, row), name="suspect"
        )
        process.start()
        theirs.close()
        try:
            said, done = await asyncio.to_thread(_receive_child_messages, ours)
            await asyncio.to_thread(process.join, _PEACE_S)
        finally:
            process.kill()
            process.join()
            ours.close()
        if done is not None:
            return done
        return WorkerCrashed(_format_exit_status(process.exitcode), began=said == [_BEGAN])


def _receive_child_messages(pipe: Any) -> tuple[list[str], Row | None]:
    said: list[str] = []
    try:
        while True:
            word, row = pipe.recv()
            if word == _DONE:
                return said, row
            said.append(word)
    except (EOFError, OSError):
        return said, None


def _run_stages_in_child(pipe: Any, stages: bytes, row: Row) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches both; the driver decides.
    fcntl.fcntl(pipe.fileno(), fcntl.F_SETFD, fcntl.FD_CLOEXEC)
    threading.Thread(target=_end_with_driver, daemon=True).start()
    walk = StageChain(pickle.loads(stages))  # noqa: S301  made by the driver, a moment ago
    pipe.send((_BEGAN, None))
    pipe.send((_DONE, walk.take(row)))
    walk.close()


def _end_with_driver() -> None:
    driver = multiprocessing.parent_process()
    if driver is not None:
        connection.wait([driver.sentinel])
        os._exit(1)


def _format_exit_status(code: int | None) -> str:
    if code is not None and code < 0:
        return signal.Signals(-code).name
    return f"exit code {code}"
