"""Single-writer lock of a table: a kernel lock for a directory, a lease object for a store.

The kernel releases its lock when the process ends for any reason. A lease is an object that its
owner rewrites regularly. A process that sees it unchanged for `LEASE_S` seconds by the
process's own clock may take it over with a conditional put. A process on the same machine may
take it over immediately if the owner is dead.
"""

import contextlib
import fcntl
import json
import os
import socket
import threading
import time
import uuid
from pathlib import Path
from typing import Any, Protocol

from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError

from unreel.core.errors import UnreadableSourceError
from unreel.engine.location import StorageLocation

LEASE_S = 60.0
_FLOCK = "hhqqi4x"
"""Format of `struct flock` of Linux on 64 bits."""
_held_here: set[str] = set()
_guard = threading.Lock()


class WriterLock(Protocol):
    """Interface of the lock that the only writer of a table holds during the `with` block."""

    def __enter__(self) -> "WriterLock": ...

    def __exit__(self, *_: object) -> None: ...

    def verify(self) -> None:
        """Raise if the table's lock was lost, so that nothing may be committed."""


def build_writer_lock(location: StorageLocation, *, lease_s: float = LEASE_S) -> WriterLock:
    """Return the lock of the table at `location`, not yet acquired."""
    if location.is_local:
        return _FolderLock(location)
    return _LeaseLock(location, lease_s)


def _build_busy_error(table: str, holder: str) -> UnreadableSourceError:
    problem = f"another run writes it ({holder})"
    return UnreadableSourceError(table, problem, "Wait for it to end, or end it, and run again")


class _FolderLock:
    """Lock of a local folder by a POSIX record lock: not inherited by forks, and supported by NFS."""

    def __init__(self, location: StorageLocation) -> None:
        self._path = location.path.with_name(location.path.name + ".lock")
        self._folder, self._name = location.sibling_file(".lock")
        self._file = -1

    def __enter__(self) -> "_FolderLock":
        name = str(self._path.absolute())
        with _guard:  # A record lock belongs to the process, so threads are distinguished here.
            if name in _held_here:
                raise _build_busy_error(
                    str(self._path), f"pid {os.getpid()} of this machine, this process"
                )
            self._file = self._folder.open(self._name, os.O_RDWR)
            try:
                fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                holder = os.pread(self._file, 200, 0).decode(errors="replace") or "unknown"
                os.close(self._file)
                raise _build_busy_error(str(self._path), holder) from error
            _held_here.add(name)
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"pid {os.getpid()} of {socket.gethostname()}".encode(), 0)
        return self

    def __exit__(self, *_: object) -> None:
        with _guard:
            _held_here.discard(str(self._path.absolute()))
            os.close(self._file)

    def verify(self) -> None:
        """Do nothing: the kernel holds the lock while this process lives."""


class _LeaseLock:
    def __init__(self, location: StorageLocation, lease_s: float) -> None:
        folder, _, name = location.uri.rpartition("/")
        self._uri, self._name, self._lease_s = location.uri, name + ".lock", lease_s
        self._store: Any = StorageLocation(folder, location.options).objects()
        path = Path("/proc/sys/kernel/random/boot_id")
        self._me = {
            "owner": uuid.uuid4().hex,
            "host": socket.gethostname(),
            "boot": (
                path.read_text(encoding="ascii").strip() if path.exists() else uuid.uuid4().hex
            ),
            "pid": os.getpid(),
        }
        self._beat = 0
        self._tag: Any = None
        self._lost = False
        self._guard = threading.Lock()
        self._stop = threading.Event()
        self._pulse = threading.Thread(target=self._renew_for_ever, daemon=True, name="lease")

    def __enter__(self) -> "_LeaseLock":
        try:
            self._tag = self._put("create")
        except (AlreadyExistsError, PreconditionError):
            self._tag = self._own_tag()
            if self._tag is None:
                try:
                    self._take_over()
                except FileNotFoundError:
                    try:
                        self._tag = self._put("create")
                    except (AlreadyExistsError, PreconditionError) as error:
                        raise _build_busy_error(self._uri, "which came first") from error
        self._pulse.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._pulse.join()
        if not self._lost:
            with contextlib.suppress(BaseError):  # The next run finds that its holder is gone.
                self._store.delete(self._name)

    def verify(self) -> None:
        with self._guard:
            if not self._lost:
                self._renew()
            if self._lost:
                raise _build_busy_error(self._uri, "which took over while this run did not move")

    def _put(self, mode: Any) -> Any:
        self._beat += 1
        body = json.dumps(self._me | {"beat": self._beat}).encode()
        return self._store.put(self._name, body, mode=mode)["e_tag"]

    def _renew(self) -> None:
        try:
            self._tag = self._put({"e_tag": self._tag})
        except (PreconditionError, AlreadyExistsError, FileNotFoundError):
            self._tag = self._own_tag()
            self._lost = self._tag is None

    def _own_tag(self) -> Any:
        """Return the tag of the lease if this process owns it, else `None`; a put may succeed without a reply."""
        try:
            lease = self._store.get(self._name)
        except FileNotFoundError:
            return None
        is_ours = str(self._me["owner"]).encode() in bytes(lease.bytes())
        return lease.meta["e_tag"] if is_ours else None

    def _renew_for_ever(self) -> None:
        while not self._stop.wait(self._lease_s / 4):
            with self._guard:
                try:
                    self._renew()
                except BaseError:
                    continue  # The store is unavailable: `verify` decides before the next commit.

    def _take_over(self) -> None:
        lease = self._store.get(self._name)
        tag = lease.meta["e_tag"]
        name, is_dead = self._read_holder(lease)
        if not is_dead:
            deadline = time.monotonic() + self._lease_s
            while time.monotonic() < deadline:
                if self._store.head(self._name)["e_tag"] != tag:
                    raise _build_busy_error(self._uri, name)
                time.sleep(self._lease_s / 20)
        try:
            self._tag = self._put({"e_tag": tag})
        except PreconditionError as error:
            raise _build_busy_error(self._uri, name) from error

    def _read_holder(self, lease: Any) -> tuple[str, bool]:
        """Return the owner of a lease, and whether it is a process of this machine that has ended."""
        try:
            holder = json.loads(bytes(lease.bytes()))
            pid, host, boot = int(holder["pid"]), str(holder["host"]), holder["boot"]
        except (ValueError, TypeError, LookupError):
            return "unknown", False
        is_local = (host, boot) == (self._me["host"], self._me["boot"])
        return f"pid {pid} of {host}", is_local and _is_process_dead(pid)


def _is_process_dead(pid: int) -> bool:
    """Return whether a local process is gone or a zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state in {"Z", "X"}
