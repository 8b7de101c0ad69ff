"""In-memory LRU cache of decoded clip inputs, which may be shared by several worker processes."""

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
    """LRU cache of bytes by key, with a total size of at most `most_bytes`."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes, self._n_bytes = most_bytes, 0
        self._kept: OrderedDict[str, bytes] = OrderedDict()

    def get(self, key: str) -> bytes | None:
        """Return the bytes stored under `key`; `None` if missing."""
        if key in self._kept:
            self._kept.move_to_end(key)
        return self._kept.get(key)

    def put(self, key: str, data: bytes) -> None:
        """Store `data` under `key` unless it is larger than the cache, and drop the least recently used."""
        if len(data) > self._most_bytes:
            return
        self._n_bytes += len(data) - len(self._kept.pop(key, b""))
        self._kept[key] = data
        while self._n_bytes > self._most_bytes:
            _, gone = self._kept.popitem(last=False)
            self._n_bytes -= len(gone)


def read_cached_value(gallery: Any, key: str) -> Any:
    """Return the value of `key`, pickled in memory by this training; `None` if it is missing."""
    data = gallery.get(key)
    return None if data is None else pickle.loads(data)  # noqa: S301


def write_cached_value(gallery: Any, key: str, value: object) -> None:
    """Pickle `value` and store it in the cache under `key`."""
    gallery.put(key, pickle.dumps(value))


class _CacheServer(BaseManager):
    """Manager process that holds one cache for all decoding workers."""


_CacheServer.register("Gallery", LruCache)


def exit_with_parent_process() -> None:
    """Make this process exit when its parent process exits, and ignore Ctrl-C.

    A killed training cannot stop its workers, and torch's own watchdog checks only the fork server,
    which runs as long as its children.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_exit_after_process, args=(parent_process(),), daemon=True).start()


def _exit_after_process(parent: Any) -> None:
    parent.join()
    os._exit(1)


@contextlib.contextmanager
def open_clip_input_cache(most_bytes: int, *, shared: bool) -> Iterator[Any]:
    """Open a cache of clip inputs, in this process or (if `shared`) in one that all workers share."""
    if not shared:
        yield LruCache(most_bytes)
        return
    keeper = _CacheServer(ctx=get_context("forkserver"))
    keeper.start(exit_with_parent_process)
    with keeper:
        yield keeper.Gallery(most_bytes)  # type: ignore[attr-defined]  # registered by name
