"""In-memory cache of encoded frames for the next epoch: JPEGs are small, decoding is slow."""

import contextlib
import os
import pickle
import signal
import threading
from collections import OrderedDict
from collections.abc import Iterator
from multiprocessing import get_context, parent_process
from multiprocessing.managers import BaseManager
from typing import Any


class LruCache:
    """Values by key within `most_bytes`; the least recently used are dropped first."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes, self._n_bytes = most_bytes, 0
        self._kept: OrderedDict[str, bytes] = OrderedDict()

    def get(self, key: str) -> bytes | None:
        """Return the bytes stored under `key`; `None` if missing."""
        if key in self._kept:
            self._kept.move_to_end(key)
        return self._kept.get(key)

    def put(self, key: str, data: bytes) -> None:
        """Keep `data`, if it fits at all."""
        if len(data) > self._most_bytes:
            return
        self._n_bytes += len(data) - len(self._kept.pop(key, b""))
        self._kept[key] = data
        while self._n_bytes > self._most_bytes:
            _, gone = self._kept.popitem(last=False)
            self._n_bytes -= len(gone)


def recall(gallery: Any, key: str) -> Any:
    """Return the cached value of `key`; `None` if it is missing.

    The unpickled data were pickled by this training in memory: no file is involved.
    """
    data = gallery.get(key)
    return None if data is None else pickle.loads(data)  # noqa: S301


def keep(gallery: Any, key: str, value: object) -> None:
    """Keep `value` for the next time."""
    gallery.put(key, pickle.dumps(value))


class _CacheServer(BaseManager):
    """Process that holds one cache for all decoding workers."""


_CacheServer.register("Gallery", LruCache)


def serve_parent() -> None:
    """Make this process end with the training process in every case, and ignore Ctrl-C.

    A killed training cannot end its workers, and torch's own watchdog sees only the fork server,
    which lives as long as its children.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent_process(),), daemon=True).start()


def _end_with(parent: Any) -> None:
    parent.join()
    os._exit(1)


@contextlib.contextmanager
def open_gallery(most_bytes: int, *, shared: bool) -> Iterator[Any]:
    """Yield a cache for this process, or a cache in its own process that decoding workers share."""
    if not shared:
        yield LruCache(most_bytes)
        return
    keeper = _CacheServer(ctx=get_context("forkserver"))
    keeper.start(serve_parent)
    with keeper:
        yield keeper.Gallery(most_bytes)  # type: ignore[attr-defined]  # registered by name
