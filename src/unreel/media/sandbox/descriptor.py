"""The file as a task sees it: bytes at positions, without a name."""

import io
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


class DescriptorFile(io.RawIOBase):
    """A read-only file over a descriptor that has no name and does not give the descriptor away.

    A demuxer that knows a name looks for neighbours of it; this one has nothing to start from. It
    reads at its own position, so it needs neither `lseek` nor `fstat` once the child is confined.
    """

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._size = os.fstat(descriptor).st_size
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        count = os.preadv(self._descriptor, [buffer], self._position)
        self._position += count
        return count

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        origins = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}
        if whence not in origins:
            msg = f"whence must be 0, 1 or 2, got {whence}"
            raise ValueError(msg)
        target = origins[whence] + offset
        if target < 0:
            msg = f"a position must not be negative, got {target}"
            raise ValueError(msg)
        self._position = target
        return target

    def tell(self) -> int:
        return self._position
