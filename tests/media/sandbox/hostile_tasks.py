"""Tasks that do what a decoder taken over by a file might do. Loaded by a zygote, not by pytest."""

import ctypes
import errno
import json
import mmap
import os
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from unreel.core.errors import MediaError
from unreel.core.failure import FailureReason
from unreel.media.messages import Task, TaskReplyPayload

GIB = 1024**3
LIBC = ctypes.CDLL(None, use_errno=True)


def _task(act: Callable[[Mapping[str, Any]], object]) -> Task:
    """A task that ignores its file; what `act` returns is the header's `got`."""

    def run(file: BinaryIO, request: Mapping[str, Any]) -> TaskReplyPayload:
        return TaskReplyPayload({"got": act(request)})

    return run


def echo(file: BinaryIO, request: Mapping[str, Any]) -> TaskReplyPayload:
    """The well-behaved one."""
    file.seek(-3, os.SEEK_END)
    tail = file.read()
    file.seek(0)
    asked = request if len(str(request)) < 1000 else {name: len(request[name]) for name in request}
    return TaskReplyPayload(
        {"asked": dict(asked), "named": hasattr(file, "name")}, (file.read(4), tail)
    )


def _loop(request: Mapping[str, Any]) -> NoReturn:
    while True:
        pass


def _sleep_through_signals(request: Mapping[str, Any]) -> NoReturn:
    signal.pthread_sigmask(signal.SIG_BLOCK, set(range(1, 32)))
    while True:
        time.sleep(60)


THREAD = (
    0x00010D00  # CLONE_VM, _FS, _FILES, _SIGHAND and _THREAD: what every thread library asks for.
)


def _threads(request: Mapping[str, Any]) -> dict[str, int]:
    """How many of 10,000 threads start, asked for by the C library and of the kernel itself."""
    by_library, codes = 0, set()
    for _ in range(10_000):
        try:
            threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        except RuntimeError:
            continue
        by_library += 1
    for number in (request["clone"], request["clone3"]):
        for _ in range(10_000):
            ctypes.set_errno(0)
            # Without a stack a thread that did start would end its process: that is seen as well.
            LIBC.syscall(ctypes.c_long(number), ctypes.c_long(THREAD), *[ctypes.c_long(0)] * 4)
            codes.add(ctypes.get_errno())
    return {"by_library": by_library, "codes": sorted(codes)}


def _advices(request: Mapping[str, Any]) -> list[int]:
    """The pieces of advice about its memory that the kernel takes from a child."""
    area = mmap.mmap(-1, 1 << 21, flags=mmap.MAP_PRIVATE)
    place = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(area)))
    size = ctypes.c_size_t(1 << 21)
    return [code for code in (*range(26), *range(97, 104)) if not LIBC.madvise(place, size, code)]


def _connect(request: Mapping[str, Any]) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as line:
        line.connect(("127.0.0.1", request["port"]))


def _send_datagram(request: Mapping[str, Any]) -> None:
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", request["port"]))


def _fork(request: Mapping[str, Any]) -> int:
    pid = os.fork()
    if pid == 0:
        time.sleep(60)
        os._exit(0)
    return pid


def _fork_bomb(request: Mapping[str, Any]) -> int:
    # Bounded, so that a hole in the sandbox fails the test and not the machine.
    return sum(_fork(request) > 0 for _ in range(200))


def _write_beside(request: Mapping[str, Any]) -> None:
    Path(request["path"]).write_text("owned", encoding="utf-8")


def _large(request: Mapping[str, Any]) -> int:
    return len(bytearray(b"x") * (2 * GIB))


def _many_small(request: Mapping[str, Any]) -> int:
    kept: list[bytearray] = []
    while len(kept) < 2 * GIB // 4096:
        kept.append(bytearray(os.urandom(16) * 256))
    return len(kept)


def _shared_memory(request: Mapping[str, Any]) -> int:
    area = mmap.mmap(-1, 2 * GIB)
    for offset in range(0, 2 * GIB, 4096):
        area[offset] = 1
    return len(area)


def _executable_memory(request: Mapping[str, Any]) -> int:
    return len(mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_EXEC | mmap.PROT_WRITE))


def _raise_limit(request: Mapping[str, Any]) -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))


def _syscalls(request: Mapping[str, Any]) -> dict[str, int]:
    """The errno that each raw call gets, with arguments that no call accepts."""
    found = {}
    for name, number in request["numbers"].items():
        ctypes.set_errno(0)
        LIBC.syscall(ctypes.c_long(number), *[ctypes.c_long(-1)] * 6)
        found[name] = ctypes.get_errno()
    return found


def _surroundings(request: Mapping[str, Any]) -> dict[str, Any]:
    """What a child still has of the world: variables, arguments, descriptors."""
    opened = []
    for descriptor in range(1024):
        try:
            os.pread(descriptor, 0, 0)
        except OSError as error:
            if error.errno == errno.EBADF and not _writable(descriptor):
                continue
        opened.append(descriptor)
    variables = dict(os.environ)  # noqa: TID251  what leaks is the question
    return {"environment": variables, "descriptors": opened}


def _writable(descriptor: int) -> bool:
    try:
        os.write(descriptor, b"")
    except OSError:
        return False
    return True


def _pipe() -> int:
    """The reply pipe, found the way that foreign code would: it is the one that can be written."""
    for descriptor in range(3, 64):
        try:
            os.write(descriptor, b"")
        except OSError as error:
            if error.errno not in (errno.EBADF, errno.EINVAL):
                raise
        else:
            return descriptor
    raise LookupError


def _say(*pieces: bytes, then: Callable[[], object] | None = None) -> Task:
    """Write `pieces` straight to the caller, do `then`, and end without another word."""

    def run(file: BinaryIO, request: Mapping[str, Any]) -> NoReturn:
        for piece in pieces:
            left = memoryview(piece)
            while left:
                left = left[os.write(_pipe(), left) :]
        if then:
            then()
        os._exit(0)

    return run


def _flood() -> NoReturn:
    piece = b"\0" * 1024 * 1024
    for _ in range(10 * 1024):
        os.write(_pipe(), piece)
    os._exit(0)


def _framed(body: object, *, length: int | None = None) -> bytes:
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    return struct.pack(">4sI", b"UNRL", len(text) if length is None else length) + text


def _whole(blob: bytes) -> bytes:
    return _framed({"header": {"got": "all"}, "blobs": [len(blob)]}) + blob


class _UnprintableError(Exception):
    def __str__(self) -> str:
        raise ValueError


def _raise(error: BaseException) -> Task:
    def run(file: BinaryIO, request: Mapping[str, Any]) -> NoReturn:
        raise error

    return run


def _wrapped_memory_error(file: BinaryIO, request: Mapping[str, Any]) -> TaskReplyPayload:
    raise MediaError(FailureReason.UNDECODABLE, "damaged") from MemoryError()


def _claim_failure(reason: object, detail: object) -> Task:
    return _say(_framed({"failure": {"reason": reason, "detail": detail}}))


TASKS: Mapping[str, Task] = {
    "echo": echo,
    "threads": _task(_threads),
    "advices": _task(_advices),
    "syscalls": _task(_syscalls),
    "surroundings": _task(_surroundings),
    "nap": _task(lambda request: time.sleep(request["seconds"])),
    # Reaching out.
    "read-passwd": _task(lambda _: Path("/etc/passwd").read_text(encoding="utf-8")),
    "stat-passwd": _task(lambda _: Path("/etc/passwd").stat().st_size),
    "list-root": _task(lambda _: [str(path) for path in Path("/").iterdir()]),
    "read-proc": _task(lambda _: Path("/proc/self/environ").read_text(encoding="utf-8")),
    "connect": _task(_connect),
    "send-datagram": _task(_send_datagram),
    "unix-socket": _task(lambda _: str(socket.socketpair())),
    "fork": _task(_fork),
    "fork-bomb": _task(_fork_bomb),
    "execve": _task(lambda _: os.execv("/bin/true", ["true"])),
    "spawn": _task(lambda _: os.posix_spawn("/bin/true", ["true"], {})),
    "kill-victim": _task(lambda request: os.kill(request["pid"], signal.SIGKILL)),
    "kill-parent": _task(lambda _: os.kill(os.getppid(), signal.SIGKILL)),
    "write-file": _task(_write_beside),
    "unlink": _task(lambda request: Path(request["path"]).unlink()),
    "memfd": _task(lambda _: os.memfd_create("x")),
    "executable-memory": _task(_executable_memory),
    "raise-limit": _task(_raise_limit),
    # Taking too much.
    "allocate-2-gb": _task(_large),
    "allocate-2-gb-in-small-pieces": _task(_many_small),
    "share-2-gb": _task(_shared_memory),
    "loop": _task(_loop),
    "loop-in-c": _task(lambda _: sum(range(10**14))),
    "sleep": _task(_sleep_through_signals),
    # Dying.
    "exit-0": _task(lambda _: os._exit(0)),
    "exit-3": _task(lambda _: os._exit(3)),
    "kill-itself": _task(lambda _: os.kill(os.getpid(), signal.SIGKILL)),
    "segfault": _task(lambda _: ctypes.string_at(0)),
    "abort": _task(lambda _: os.abort()),
    "raise-runtime-error": _raise(RuntimeError("\x1b[31mred\x1b[0m " + "long " * 1000)),
    "raise-unprintable": _raise(_UnprintableError()),
    "raise-keyboard-interrupt": _raise(KeyboardInterrupt()),
    "raise-system-exit": _raise(SystemExit(0)),
    "raise-memory-error": _raise(MemoryError()),
    "raise-media-error": _raise(MediaError(FailureReason.NO_VIDEO, "sound only")),
    "raise-wrapped-memory-error": _wrapped_memory_error,
    # Lying.
    "say-nothing-and-close": _say(then=lambda: (os.close(_pipe()), time.sleep(60))),
    "say-garbage": _say(os.urandom(4096)),
    "say-10-gb": _say(then=_flood),
    "announce-10-gb-of-blobs": _say(_framed({"header": {}, "blobs": [10 * GIB]}), then=_flood),
    "announce-4-gb-of-header": _say(_framed({}, length=2**32 - 1), then=_flood),
    "say-half-a-prefix": _say(b"UNR"),
    "say-half-a-header": _say(_framed({"header": {"got": "half"}}, length=1000)),
    "say-half-a-blob": _say(_whole(b"x" * 1000)[:-1]),
    "say-half-and-sleep": _say(_whole(b"x" * 1000)[:-1], then=lambda: time.sleep(60)),
    "say-no-json": _say(_framed(b"{]")),
    "say-no-utf-8": _say(_framed(b'{"header": {"\xff": 1}, "blobs": []}')),
    "say-nan": _say(_framed(b'{"header": {"x": NaN}, "blobs": []}')),
    "say-half-a-surrogate": _say(_framed(b'{"header": {"x": "\\ud800"}, "blobs": []}')),
    "say-a-huge-number": _say(_framed(b'{"header": {"x": ' + b"9" * 10_000 + b'}, "blobs": []}')),
    "say-deep-json": _say(_framed(b"[" * 100_000)),
    "say-a-list": _say(_framed([])),
    "say-no-header": _say(_framed({"blobs": []})),
    "say-negative-blob": _say(_framed({"header": {}, "blobs": [-1]})),
    "say-text-blob": _say(_framed({"header": {}, "blobs": ["1"]})),
    "say-a-million-blobs": _say(_framed({"header": {}, "blobs": [0] * 1_000_000})),
    "say-unknown-reason": _claim_failure("because", ""),
    "say-no-detail": _claim_failure("no-video", None),
    "say-escapes": _claim_failure("no-video", "\x1b]0;owned\x07\n\u202e" + "x" * 10_000),
    "say-pickle": _say(b"\x80\x04cos\nsystem\n(S'true'\ntR."),
    "say-all-then-loop": _say(_whole(b"x" * 1000), then=lambda: time.sleep(60)),
    "say-all-then-more": _say(_whole(b"x" * 1000), then=_flood),
    "return-no-payload": _task(lambda _: object()),
    "return-400-mb": lambda file, request: TaskReplyPayload({}, (bytes(300 * 1024**2),)),
}
