"""What would betray a file that reaches out: a port that counts visits, a file that notices readers."""

import ctypes
import os
import socketserver
import struct
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

_IN_ACCESS, _IN_OPEN = 0x1, 0x20
_EVENT = struct.Struct("iIII")


class Listener:
    """A loopback TCP port that answers "404" and remembers who came."""

    def __init__(self) -> None:
        self.visits: list[bytes] = []
        visits = self.visits

        class Visit(socketserver.StreamRequestHandler):
            timeout = 5

            def handle(self) -> None:
                visits.append(b"")
                visits[-1] = self.rfile.readline(200)
                self.wfile.write(b"HTTP/1.0 404 Not Found\r\nContent-Length: 0\r\n\r\n")

        socketserver.ThreadingTCPServer.daemon_threads = True
        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Visit)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), daemon=True
        )

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class Watch:
    """Counts how often a file was opened or read, by anybody, through inotify."""

    def __init__(self, path: Path) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        added = libc.inotify_add_watch(self._descriptor, bytes(path), _IN_ACCESS | _IN_OPEN)
        if self._descriptor < 0 or added < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    def noticed(self) -> int:
        """Events since the last question."""
        try:
            return len(os.read(self._descriptor, 65_536)) // _EVENT.size
        except BlockingIOError:
            return 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._descriptor)
