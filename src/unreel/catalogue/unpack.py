"""Unpacking of zip files from the internet, whole or split into parts, without writing outside a folder."""

import io
import stat
import zipfile
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import accumulate
from pathlib import PurePosixPath
from typing import IO

from unreel.core.errors import InvalidValueError, UnreadableSourceError, require_disk_space
from unreel.core.output_files import OutputDirectory
from unreel.core.safe_names import require_relative_path

MAX_RATIO = 200
"""Maximum size of an entry in units of its compressed size, above which the archive is rejected as a bomb."""
_SMALL_BYTES = 10 << 20
"""Size up to which an entry may have any ratio."""
_MAX_ENTRIES = 1_000_000
_CHUNK_BYTES = 1 << 20
_REMEDY = "Do not use this archive, and tell the owner of the data set"


class _JoinedFiles(io.RawIOBase):
    """Read-only file that consists of the bytes of several files, one after the other."""

    def __init__(self, files: Sequence[IO[bytes]]) -> None:
        self._files = files
        sizes = [file.seek(0, io.SEEK_END) for file in files]
        self._starts = [0, *accumulate(sizes)]
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        bases = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._starts[-1]}
        self._position = max(0, bases[whence] + offset)
        return self._position

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        number = bisect_right(self._starts, self._position) - 1
        if number >= len(self._files):
            return 0
        file = self._files[number]
        file.seek(self._position - self._starts[number])
        data = file.read(len(buffer))
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)


def unpack_zip(
    parts: Sequence[str], output: OutputDirectory, *, on_bytes: Callable[[int], None]
) -> list[str]:
    """Unpack the zip file that is split into the files `parts` of `output`; return the paths of its files.

    Files go below the folder of the archive; if they have no common folder, into one with the name
    of the archive. A file that is there with the right size is kept, so that a killed call can be
    repeated. The archive stays.

    Raises:
        UnreadableSourceError: The archive is damaged, or has an entry that leads out of the folder,
            a link, an encrypted entry, or far more bytes than are stored.
        MachineError: The disk is too small.
    """
    source = str(output.root / parts[0])
    with ExitStack() as stack:
        files = [stack.enter_context(output.read(part)) for part in parts]
        try:
            archive = stack.enter_context(
                zipfile.ZipFile(io.BufferedReader(_JoinedFiles(files), _CHUNK_BYTES))
            )
            entries = [info for info in archive.infolist() if not _is_skipped(info)]
            n_packed = sum(file.seek(0, io.SEEK_END) for file in files)
            _require_harmless(entries, n_packed, source)
            folder = _choose_folder(parts[0], [info.filename for info in entries])
            paths = {f"{folder}{info.filename}": info for info in entries}
            missing = {
                path: info for path, info in paths.items() if output.size(path) != info.file_size
            }
            on_bytes(sum(info.file_size for info in entries if info not in missing.values()))
            require_disk_space(output.root, sum(info.file_size for info in missing.values()))
            for path, info in missing.items():
                with archive.open(info) as packed, output.create(path) as file:
                    for chunk in _read_chunks(packed, info.file_size):
                        file.write(chunk)
                        on_bytes(len(chunk))
        except (zipfile.BadZipFile, EOFError, NotImplementedError, ValueError) as error:
            if isinstance(error, InvalidValueError):
                raise UnreadableSourceError(source, str(error), _REMEDY) from error
            problem = f"damaged or of a kind that is not supported ({error})"
            raise UnreadableSourceError(source, problem, "Download it again") from error
    return list(paths)


def _is_skipped(info: zipfile.ZipInfo) -> bool:
    parts = PurePosixPath(info.filename).parts
    return info.is_dir() or parts[:1] == ("__MACOSX",) or parts[-1:] == (".DS_Store",)


def _require_harmless(entries: Sequence[zipfile.ZipInfo], n_packed: int, source: str) -> None:
    """Raise for an entry that may not be unpacked, before any of them is."""
    if len(entries) > _MAX_ENTRIES:
        raise UnreadableSourceError(source, f"more than {_MAX_ENTRIES} files", _REMEDY)
    # Entries that share their bytes are the trick of a bomb whose ratios look harmless.
    if sum(info.compress_size for info in entries) > n_packed:
        raise UnreadableSourceError(source, "its entries overlap", _REMEDY)
    for info in entries:
        require_relative_path(info.filename)
        mode = info.external_attr >> 16
        problem = ""
        if "\\" in info.filename or not info.filename.isprintable():
            problem = "has a name with a backslash or a control character"
        elif mode and not stat.S_ISREG(mode) and stat.S_IFMT(mode):
            problem = "is a link or another special file"
        elif info.flag_bits & 1:
            problem = "is encrypted"
        elif info.file_size > max(_SMALL_BYTES, MAX_RATIO * info.compress_size):
            problem = f"has {info.file_size:,} bytes and only {info.compress_size:,} packed ones"
        if problem:
            raise UnreadableSourceError(source, f"entry {info.filename!a} {problem}", _REMEDY)


def _choose_folder(archive: str, names: Sequence[str]) -> str:
    """Return the folder to unpack into, "" or with a final `/`."""
    above, slash, name = archive.rpartition("/")
    tops = {name.partition("/")[0] for name in names if "/" in name}
    has_common_folder = len(tops) == 1 and all("/" in name for name in names)
    stem = name.lower().partition(".zip")[0]
    return f"{above}{slash}" if has_common_folder else f"{above}{slash}{name[: len(stem)]}/"


def _read_chunks(packed: IO[bytes], size: int) -> Iterator[bytes]:
    """Yield the bytes of an entry; reject more than the `size` that its archive states."""
    while chunk := packed.read(_CHUNK_BYTES):
        size -= len(chunk)
        if size < 0:
            raise InvalidValueError("an entry has more bytes than the archive states")
        yield chunk
