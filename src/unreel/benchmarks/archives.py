"""Zip archives that strangers made, whole or in numbered parts: members are taken out safely."""

import errno
import io
import os
import stat
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final

from unreel.benchmarks.limits import ZIP_DIRECTORY_BYTES
from unreel.core.errors import InvalidValueError, UnreadableSourceError
from unreel.core.writing import OutputDirectory

BLOCK_BYTES: Final = 1 << 20
_WAYS: Final = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
"""Others let a header ask for gigabytes of memory."""


class _BoundedReader(io.BufferedReader):
    """Reads no more at once than the list of members may be long."""

    def read(self, size: int | None = -1, /) -> bytes:
        most = ZIP_DIRECTORY_BYTES + 1
        found = super().read(most if size is None or size < 0 else min(size, most))
        if len(found) == most:
            msg = f"a list of members of more than {ZIP_DIRECTORY_BYTES} bytes"
            raise ValueError(msg)
        return found


class JoinedFile(io.RawIOBase):
    """Several files read as one, end to end, without copying them."""

    def __init__(self, paths: Sequence[Path]) -> None:
        super().__init__()
        with ExitStack() as stack:
            self._parts: list[IO[bytes]] = [stack.enter_context(path.open("rb")) for path in paths]
            self._stack = stack.pop_all()
        self._starts = [0]
        for part in self._parts:
            self._starts.append(self._starts[-1] + os.fstat(part.fileno()).st_size)
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._starts[-1]}[whence]
        if base + offset < 0:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))  # as every file does
        self._at = base + offset
        return self._at

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        for part, start, end in zip(self._parts, self._starts, self._starts[1:], strict=False):
            if start <= self._at < end:
                part.seek(self._at - start)
                data = part.read(min(len(view), end - self._at))
                view[: len(data)] = data
                self._at += len(data)
                return len(data)
        return 0

    def close(self) -> None:
        self._stack.close()
        super().close()


def find_parts(folder: Path, name: str) -> tuple[Path, ...]:
    """The archive `name` in `folder`: itself, or `name.001`, `name.002`, ...; empty when absent.

    Raises:
        UnreadableSourceError: a part between two others is missing.
    """
    if (folder / name).is_file():
        return (folder / name,)
    parts = sorted(folder.glob(f"{name}.[0-9][0-9][0-9]"))
    wanted = [folder / f"{name}.{number:03d}" for number in range(1, len(parts) + 1)]
    if parts != wanted:
        missing = next(path.name for path in wanted if path not in parts)
        raise UnreadableSourceError(str(folder), f"{missing} is missing", "Fetch that part again")
    return tuple(parts)


@contextmanager
def open_archive(parts: Sequence[Path]) -> Iterator[zipfile.ZipFile]:
    """The zip archive that `parts` make together."""
    with ExitStack() as stack:
        try:
            joined = stack.enter_context(JoinedFile(parts))
            buffered = stack.enter_context(_BoundedReader(joined, buffer_size=BLOCK_BYTES))
            archive = stack.enter_context(zipfile.ZipFile(buffered))
        except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError) as error:
            remedy = "Check that all parts are there and whole"
            raise UnreadableSourceError(str(parts[0]), f"not a zip: {error}", remedy) from error
        yield archive


def is_junk(member: str) -> bool:
    """True for what macOS and archivers leave behind, and for folders."""
    parts = PurePosixPath(member).parts
    return (
        member.endswith("/")
        or not parts
        or "__MACOSX" in parts
        or parts[-1].startswith("._")
        or parts[-1] == ".DS_Store"
    )


def extract_member(
    archive: zipfile.ZipFile,
    member: zipfile.ZipInfo,
    *,
    into: OutputDirectory,
    name: str,
    max_bytes: int,
) -> Path:
    """Extract `member` to `name` below `into` atomically, and nowhere else.

    Raises:
        InvalidValueError: The member is a link, encrypted, damaged or larger than `max_bytes`.
        UnsafeTargetError: A link or another member is in the way.
    """
    if member.flag_bits & 0x1 or stat.S_ISLNK(member.external_attr >> 16):
        msg = f"{member.filename!a} is locked or a link. Fetch the archive again"
        raise InvalidValueError(msg)
    if member.compress_type not in _WAYS:
        msg = f"{member.filename!a} is packed in a way that is not taken. Pack it with deflate"
        raise InvalidValueError(msg)
    try:
        with archive.open(member) as source, into.create(name) as sink:
            _copy(source, sink, max_bytes=max_bytes)
    except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
        msg = f"{member.filename!a} cannot be created: a file has the name of its folder. Move it"
        raise InvalidValueError(msg) from error
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        msg = f"{member.filename!a} is damaged: {error}. Fetch the archive again"
        raise InvalidValueError(msg) from error
    return into.root / name


def _copy(source: IO[bytes], sink: IO[bytes], *, max_bytes: int) -> None:
    # Counts what comes out: the size in a header is a claim.
    left = max_bytes
    while block := source.read(BLOCK_BYTES):
        left -= len(block)
        if left < 0:
            msg = (
                f"more than {max_bytes} bytes. Raise the limit if the file is meant to be so large"
            )
            raise InvalidValueError(msg)
        sink.write(block)
