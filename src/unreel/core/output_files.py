"""The only module that writes files, and only below folders that the user named.

That folder may be a link, because the user named it; nothing below it may be. Paths are walked
part by part from an open folder, so no link can be inserted between a check and a write. A file is
written under a temporary name and renamed atomically; an existing file or link is replaced and
never followed.
"""

import contextlib
import errno
import io
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NoReturn, TextIO

from unreel.core.errors import UnsafeTargetError
from unreel.core.safe_names import require_relative_path

PART = ".unreel-"
"""Prefix of the temporary name of an incomplete file or folder; a killed process may leave it behind."""
_NEW = os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK, opening a pipe in the place of a file would block.
_THERE = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_DEEPEST = 16
_NOT_A_FOLDER = (errno.ELOOP, errno.ENOTDIR)
_NOT_A_FILE = (errno.ELOOP, errno.ENXIO, errno.EISDIR)


@dataclass(frozen=True, slots=True)
class OutputDirectory:
    """A folder to write into. Names are relative to it, with `/` between their parts.

    Every method raises `InvalidValueError` for a name that leads out of the folder and
    `UnsafeTargetError` if a link or a foreign file is in the way.
    """

    root: Path
    published: bool = False
    """Whether files and new folders follow the umask, for output to share (a report, an export, a frozen
    benchmark). Otherwise files are 0600, and new folders 0700."""

    def write(self, name: str, data: bytes) -> Path:
        """Write `data` to the file `name` atomically; return its path."""
        with self.create(name) as file:
            file.write(data)
        return self.root / name

    @contextlib.contextmanager
    def create(self, name: str) -> Iterator[IO[bytes]]:
        """Open a file that becomes `name` on success; an error leaves the existing file unchanged."""
        with self._parent(name) as (parent, last), self._part(parent, last) as part:
            descriptor = os.open(part, os.O_WRONLY | _NEW, 0o600, dir_fd=parent)
            with os.fdopen(descriptor, "wb") as file:
                yield file
                file.flush()
                if self.published:
                    with contextlib.suppress(OSError):  # some file systems have no modes
                        os.fchmod(descriptor, 0o600 | (os.fstat(parent).st_mode & 0o044))
                if _has_entry(last, parent):
                    # A power failure must not destroy both the old and the new file.
                    os.fsync(descriptor)

    @contextlib.contextmanager
    def create_text(self, name: str) -> Iterator[TextIO]:
        """Open a text file for writing like `create`, in UTF-8 and without newline translation."""
        with self.create(name) as file:
            text = io.TextIOWrapper(file, encoding="utf-8", newline="")
            yield text
            text.detach()

    def copy(self, source: Path, name: str) -> None:
        """Copy the file `source` to the file `name` atomically."""
        with open_regular_user_file(source) as file, self.create(name) as into:
            shutil.copyfileobj(file, into, 1 << 20)

    def hard_link(self, source: Path, name: str) -> bool:
        """Make `name` a hard link to `source`; return `False` if the file system does not allow it."""
        with self._parent(name) as (parent, last), contextlib.suppress(OSError):
            with self._part(parent, last) as part:
                os.link(source, part, dst_dir_fd=parent, follow_symlinks=False)
            return True
        return False

    def link(self, source: Path, name: str) -> None:
        """Make `name` a hard link to the file `source`; a symbolic link if that is not possible."""
        if not self.hard_link(source, name):
            with self._parent(name) as (parent, last), self._part(parent, last) as part:
                os.symlink(source, part, dir_fd=parent)

    def remove(self, name: str) -> None:
        """Delete the file `name` if it exists; a link is deleted, not its target."""
        with contextlib.suppress(FileNotFoundError), self._parent(name, make=False) as (at, last):
            os.unlink(last, dir_fd=at)

    def remove_folder(self, name: str) -> None:
        """Delete the folder `name` if it exists, without following links; renamed first, against kills."""
        with contextlib.suppress(FileNotFoundError), self._parent(name, make=False) as (at, last):
            gone = f"{PART}{secrets.token_hex(8)}"
            os.rename(last, gone, src_dir_fd=at, dst_dir_fd=at)
            shutil.rmtree(gone, dir_fd=at)

    def sync_to_disk(self, name: str) -> None:
        """Sync all files and entries of the folder `name` to disk; call it again after renaming the folder."""
        self.require_plain(name, whole=True)
        files = self.files(name)
        for path in files:
            with self.read(f"{name}/{path}") as file:
                os.fsync(file.fileno())
        inner = {f"{name}/{path.rpartition('/')[0]}" for path in files if "/" in path}
        for folder in (*sorted(inner), name):
            with self._parent(_format_child_name(folder), make=False) as (at, _):
                os.fsync(at)
        with self._parent(name, make=False) as (above, _):
            os.fsync(above)

    def read(self, name: str) -> io.BufferedReader:
        """Open the file `name` for reading, if it is a regular file; raise `FileNotFoundError` if the file does not exist."""
        with self._parent(name, make=False) as (parent, last):
            return os.fdopen(self._open(last, os.O_RDONLY, parent=parent, name=name), "rb")

    def append(self, name: str) -> IO[bytes]:
        """Open the file `name` for appending; create it if missing."""
        return os.fdopen(self.open(name, os.O_WRONLY | os.O_APPEND), "ab")

    def open(self, name: str, flags: int) -> int:
        """Open or create `name` without links; return its descriptor; reject others' or hard-linked files."""
        with self._parent(name) as (parent, last):
            while True:
                with contextlib.suppress(FileExistsError):
                    return os.open(last, flags | _NEW, 0o600, dir_fd=parent)
                # Another process may have created the file and deleted it again.
                with contextlib.suppress(FileNotFoundError):
                    descriptor = self._open(last, flags, parent=parent, name=name)
                    status = os.fstat(descriptor)
                    # A mount or a container may map all files to the owner of the folder.
                    owners = {os.geteuid(), os.fstat(parent).st_uid}
                    if status.st_uid in owners and status.st_nlink <= 1:
                        return descriptor
                    os.close(descriptor)
                    self._refuse(name, "belongs to another user, or has a second name (hard link)")

    def open_fresh(self, name: str, flags: int) -> int:
        """Return a descriptor of a new, empty file `name`; an existing file is replaced, not truncated."""
        with self._parent(name) as (parent, last):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(last, dir_fd=parent)
            return os.open(last, flags | _NEW, 0o600, dir_fd=parent)

    def rename(self, name: str, to: str) -> None:
        """Rename the file or folder `name` to `to`, in the same folder."""
        with self._parent(name, make=False) as (parent, last):
            os.rename(last, require_relative_path(to), src_dir_fd=parent, dst_dir_fd=parent)

    def move_entry(self, name: str, to: str) -> None:
        """Move the file or folder `name` to `to`, which may be in another folder below this one."""
        with self._parent(name, make=False) as (parent, last), self._parent(to) as (target, moved):
            os.rename(last, moved, src_dir_fd=parent, dst_dir_fd=target)

    def size(self, name: str) -> int | None:
        """Return the size of the file `name` in bytes; None if it is missing or not a regular file."""
        with contextlib.suppress(FileNotFoundError), self._parent(name, make=False) as (at, last):
            status = os.stat(last, dir_fd=at, follow_symlinks=False)
            return status.st_size if stat.S_ISREG(status.st_mode) else None
        return None

    def make(self, name: str = "") -> Path:
        """Create the directory `name` below this one, or this one itself, if missing; return its path."""
        with self._parent(_format_child_name(name)):
            return self.root / name

    def files(self, name: str = "") -> list[str]:
        """Return the files and links below `name`, relative to it and sorted."""
        with (
            contextlib.suppress(FileNotFoundError),
            self._parent(_format_child_name(name), make=False) as at,
        ):
            return sorted(path for path, _ in self._walk(at[0], depth=_DEEPEST))
        return []

    def require_plain(self, name: str = "", *, whole: bool = False) -> None:
        """Raise for a link in the path of the folder `name` or among its entries; `whole`: at any depth."""
        with (
            contextlib.suppress(FileNotFoundError),
            self._parent(_format_child_name(name), make=False) as at,
        ):
            for path, is_plain in (
                self._walk(at[0], depth=_DEEPEST) if whole else _list_entries(at[0])
            ):
                if not is_plain:
                    self._refuse(f"{name}/{path}" if name else path, "is a link, or no file")

    def _walk(self, at: int, above: str = "", *, depth: int) -> Iterator[tuple[str, bool]]:
        """Yield every non-directory entry below an open directory, and whether it is a regular file."""
        folders: list[str] = []
        for name, is_plain in _list_entries(at, folders):
            yield above + name, is_plain
        for name in folders:
            if not depth:
                self._refuse(above + name, "is nested more deeply than unreel ever writes")
            below = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=at)
            try:
                yield from self._walk(below, f"{above}{name}/", depth=depth - 1)
            finally:
                os.close(below)

    @contextlib.contextmanager
    def _parent(self, name: str, *, make: bool = True) -> Iterator[tuple[int, str]]:
        """Yield the open parent directory of `name`, created with `make`, and the last part of `name`."""
        *folders, last = require_relative_path(name).split("/")
        try:
            if make:
                self.root.mkdir(parents=True, exist_ok=True)
            at = os.open(self.root, _FOLDER)
        except (FileExistsError, NotADirectoryError):
            raise UnsafeTargetError(str(self.root), "is not a folder") from None
        try:
            for part in folders:
                if make:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(part, 0o777 if self.published else 0o700, dir_fd=at)
                try:
                    below = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=at)
                except OSError as error:
                    if error.errno in _NOT_A_FOLDER:
                        self._refuse(name, f"{part!a} on the way there is a link, or no folder")
                    raise
                os.close(at)
                at = below
            yield at, last
        finally:
            os.close(at)

    @contextlib.contextmanager
    def _part(self, parent: int, last: str) -> Iterator[str]:
        """Yield a temporary file name; rename that file to `last` on success, delete it on an error."""
        part = f"{PART}{secrets.token_hex(8)}"
        try:
            yield part
            try:
                os.rename(part, last, src_dir_fd=parent, dst_dir_fd=parent)
            except IsADirectoryError:
                self._refuse(last, "is a folder, and a file belongs there")
        finally:
            # A rename between two hard links to one file does nothing: it may still exist.
            with contextlib.suppress(FileNotFoundError):
                os.unlink(part, dir_fd=parent)

    def _open(self, last: str, flags: int, *, parent: int, name: str) -> int:
        try:
            descriptor = os.open(last, flags | _THERE, dir_fd=parent)
        except OSError as error:
            if error.errno in _NOT_A_FILE:
                self._refuse(name, "is a link, or no file")
            raise
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            self._refuse(name, "is not a regular file")
        return descriptor

    def _refuse(self, name: str, problem: str) -> NoReturn:
        raise UnsafeTargetError(str(self.root / name), problem)


def open_regular_user_file(path: Path) -> io.BufferedReader:
    """Open the regular file at the user's `path` for reading; follow links, and never wait for a pipe."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return os.fdopen(descriptor, "rb")


def _list_entries(at: int, folders: list[str] | None = None) -> list[tuple[str, bool]]:
    """Return the entries of an open folder, with whether each is a regular file; folders are listed separately."""
    files: list[tuple[str, bool]] = []
    with os.scandir(at) as entries:
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                files.append((entry.name, entry.is_file(follow_symlinks=False)))
            elif folders is not None:
                folders.append(entry.name)
    return files


def _format_child_name(name: str) -> str:
    """Return a file name inside the directory `name`, or inside the root if `name` is empty."""
    return f"{name}/x" if name else "x"


def _has_entry(last: str, parent: int) -> bool:
    try:
        os.stat(last, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True
