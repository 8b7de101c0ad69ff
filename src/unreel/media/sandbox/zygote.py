"""Zygote: a warmed-up, single-threaded process that forks one sandboxed child for each file.

The zygote never reads a file or a reply. A caller sends the name of a task with four
descriptors: the file, the request, the pipe for the reply, and a socket for this call. The
zygote warms up a task at its first request, because children cannot load modules. On the
call's socket the zygote sends `STARTED`, and later the exit status of the child. If the caller
writes to that socket or closes it, the zygote kills the child. If the caller exits (the
connection closes or the parent process changes), the zygote and all children exit.
"""

import contextlib
import gc
import io
import json
import os
import select
import signal
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unreel.core.registry import LazyImport
from unreel.media.messages import Task, deliver_task_result
from unreel.media.sandbox.capabilities import drop_capabilities
from unreel.media.sandbox.child import serve_sandbox_request
from unreel.media.sandbox.confine import (
    ConfinementLayers,
    add_process_memory_sizes,
    detect_confinement_layers,
)

_CLIPS = Path(__file__).parent / "clips"
_CLIP = "clip.mp4"
_TRANSPORT = "clip.ts"
"""Name of the test clip with a service name, whose character set the C library loads."""

_FORM = {"width": 32, "height": 16, "rate": "12/1", "crf": 40, "sound": "kept"}
_RANGE = {"first_frame": 1, "end_frame": None, "length_s": "1/4"}
_CROP = {"left": 2, "top": 2, "width": 16, "height": 16}
_BOX = {"at_us": 0, "box": {"x0": 0.2, "y0": 0.2, "x1": 0.5, "y1": 0.5}}
_TRACE = {"span": {"start_us": 0, "end_us": 200_000}, "ends": False, "track": [_BOX]}
_COMMENTARY = {
    "lanes": [{"says": "warm \u00e9", "colour": 0, "marks": [_TRACE]}],
    "notes": ["warm"],
    "duration_us": 333_333,
}
_REQUESTS: Mapping[str, tuple[dict[str, Any], ...]] = {
    "probe": ({},),
    "frames": ({"sampling": "uniform-2", "longest_side": 32}, {"sampling": "fps-5-max-3"}),
    "sound": ({},),
    "normalise": ({"form": _FORM},),
    "render": (
        {"frame_range": {**_RANGE, "crop": _CROP}, "form": None},
        {"frame_range": {**_RANGE, "crop": None}, "form": _FORM},
    ),
    "instants": ({"at_us": [0, 100_000]},),
    "annotate": ({"commentary": _COMMENTARY},),
    "scan": ({},),
}


def warm_up_task(name: str, task: Task) -> None:
    """Run `task` on test clips to load its modules before a fork, if `_REQUESTS` has a request for it."""
    for request in _REQUESTS.get(name, ()):
        for clip in (_CLIP, _TRANSPORT):
            result = task(io.BytesIO((_CLIPS / clip).read_bytes()), request)
            deliver_task_result(result, lambda _part: None)


STARTED = b"started"
LONGEST_MESSAGE = 65536

_CARRIED = 4
_CHECK_PARENT_MS = 1000


@dataclass(frozen=True, slots=True)
class _ForkedChild:
    pid: int
    watch: int
    """Descriptor (pidfd) that becomes readable when the child has exited."""
    call: socket.socket


class ForkServer:
    """Server in the zygote that forks a child for each request, until the process `caller` exits."""

    def __init__(
        self,
        control: socket.socket,
        tasks: Mapping[str, Task],
        *,
        layers: ConfinementLayers,
        caller: int,
    ) -> None:
        self._control = control
        self._tasks = tasks
        self._warm: set[str] = set()
        self._layers = layers
        self._caller = caller
        self._by_watch: dict[int, _ForkedChild] = {}
        self._by_call: dict[int, _ForkedChild] = {}
        self._poller = select.poll()

    def warm_up(self, names: Iterable[str]) -> None:
        """Warm up the known tasks of `names`, once each, so that children need to load nothing."""
        new = (self._tasks.keys() & set(names)) - self._warm
        if not new:
            return
        for name in new:
            warm_up_task(name, self._tasks[name])
        self._warm |= new
        self._layers = add_process_memory_sizes(self._layers)
        gc.collect()
        gc.freeze()  # Children then share these pages instead of copying them.

    def serve(self) -> None:
        """Serve requests until the caller exits. Children that still run are killed with this process."""
        self._poller.register(self._control, select.POLLIN)
        # A fork of the caller may keep the connection open, so the parent process is checked too.
        while os.getppid() == self._caller:
            for descriptor, _ in self._poller.poll(_CHECK_PARENT_MS):
                if descriptor == self._control.fileno():
                    if not self._accept():
                        return
                elif descriptor in self._by_watch:
                    self._report(self._by_watch[descriptor])
                elif descriptor in self._by_call:
                    self._kill(self._by_call[descriptor])

    def _accept(self) -> bool:
        message, carried, _, _ = socket.recv_fds(self._control, LONGEST_MESSAGE, _CARRIED)
        try:
            if len(carried) == _CARRIED:
                self._start(message.decode(), *carried)
        finally:
            for descriptor in carried:
                os.close(descriptor)
        return bool(message)

    def _start(self, task: str, file: int, request: int, reply: int, call: int) -> None:
        try:
            self.warm_up([task])
        except Exception:  # noqa: BLE001  the caller then starts a zygote with this task, which reports it
            return
        zygote = os.getpid()
        try:
            pid = os.fork()
        except OSError:
            return  # The caller sees that the call's socket closes without a start.
        if pid == 0:
            serve_sandbox_request(
                self._tasks, self._layers, file=file, request=request, reply=reply, parent=zygote
            )
        child = _ForkedChild(pid, os.pidfd_open(pid), socket.socket(fileno=os.dup(call)))
        self._by_watch[child.watch] = child
        self._by_call[child.call.fileno()] = child
        self._poller.register(child.watch, select.POLLIN)
        self._poller.register(child.call, select.POLLIN)
        _send_message(child.call, STARTED)

    def _kill(self, child: _ForkedChild) -> None:
        # The process group, in case the kernel allowed the child to fork. It exists even if the
        # child has not run yet, because this process and the child both create it.
        with contextlib.suppress(OSError):
            os.setpgid(child.pid, child.pid)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        if self._by_call.pop(child.call.fileno(), None):
            self._poller.unregister(child.call)

    def _report(self, child: _ForkedChild) -> None:
        self._kill(child)
        self._poller.unregister(child.watch)
        del self._by_watch[child.watch]
        os.close(child.watch)
        _, status, usage = os.wait4(child.pid, 0)
        report = {
            "exit_code": os.waitstatus_to_exitcode(status),
            "peak_kb": usage.ru_maxrss,
            "cpu_seconds": usage.ru_utime + usage.ru_stime,
        }
        _send_message(child.call, json.dumps(report).encode())
        child.call.close()


def main(control_descriptor: int, caller: int, target: str, names: Iterable[str]) -> None:
    """Run the zygote for the process `caller`: load the tasks at `target`, warm up `names`, and serve."""
    control = socket.socket(fileno=control_descriptor)
    # Encoders such as SVT-AV1 give the process of a privileged user real-time priority, which forks
    # inherit: a file that causes an endless loop would then block a processor for all others.
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    try:
        tasks: Mapping[str, Task] = LazyImport(target).load()
        layers = detect_confinement_layers()
        zygote = ForkServer(control, tasks, layers=layers, caller=caller)
        zygote.warm_up(names)
        drop_capabilities(layers.libc)
    except Exception as error:  # noqa: BLE001  told to the caller, who has a person to tell
        _send_message(control, json.dumps({"problem": f"{type(error).__name__}: {error}"}).encode())
        return
    message = {"tasks": sorted(tasks), "missing": layers.missing}
    _send_message(control, json.dumps(message).encode())
    zygote.serve()


def _send_message(to: socket.socket, message: bytes) -> None:
    with contextlib.suppress(OSError):  # The receiver has closed the socket.
        to.send(message)
