"""Batches for supervised training: examples are decoded, encoded and collated in worker processes.

An `ExampleCollator` is sent to the decoding workers. Each worker opens its own media reader at the
first call, and all workers share one cache.
"""

import contextlib
import os
import pickle
import signal
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context, parent_process
from multiprocessing.managers import BaseManager
from typing import Any

from torch import Tensor
from torch.utils.data import get_worker_info

from unreel.core.clip import Clip
from unreel.core.content_ids import digest
from unreel.core.errors import UnreadableSourceError
from unreel.core.failure import Failure
from unreel.core.question import Condition
from unreel.engine.storage_access import (
    ClipAccessSettings,
    find_clip_change,
    provide_local_clip_file,
)
from unreel.media.access import open_media_reader
from unreel.media.reader import MediaReader
from unreel.reviewers.clip_inputs import ClipInputLoader
from unreel.reviewers.contract import ClipInput, InputKind
from unreel.reviewers.local.encoder import IGNORED, EncodedRequest, RequestEncoder
from unreel.training.examples.example import (
    ExampleOrder,
    TrainingExample,
    TrainingExampleInput,
    load_training_example_input,
)


class LruCache:
    """LRU cache of bytes by key, with a total size of at most `max_bytes`."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes, self._n_bytes = max_bytes, 0
        self._items: OrderedDict[str, bytes] = OrderedDict()

    def get(self, key: str) -> bytes | None:
        """Return the bytes stored under `key`; `None` if missing."""
        if key in self._items:
            self._items.move_to_end(key)
        return self._items.get(key)

    def put(self, key: str, data: bytes) -> None:
        """Store `data` under `key` unless it is larger than the cache, and drop the least recently used."""
        if len(data) > self._max_bytes:
            return
        self._n_bytes += len(data) - len(self._items.pop(key, b""))
        self._items[key] = data
        while self._n_bytes > self._max_bytes:
            _, gone = self._items.popitem(last=False)
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
def open_clip_input_cache(max_bytes: int, *, shared: bool) -> Iterator[Any]:
    """Open a cache of clip inputs, in this process or (if `shared`) in one that all workers share."""
    if not shared:
        yield LruCache(max_bytes)
        return
    server = _CacheServer(ctx=get_context("forkserver"))
    server.start(exit_with_parent_process)
    with server:
        yield server.Gallery(max_bytes)  # type: ignore[attr-defined]  # registered by name


PLACE = "place"
UNUSABLE = "unshown"
_MAX_TRIES = 100


UnusableExample = tuple[str, str, str]
"""Name, failure reason and detail of an example that could not be decoded or encoded."""


class ExampleCollator:
    """Collator that builds a batch from indices of the training order.

    Args:
        order: Training examples by index.
        encoder: Encoder of requests.
        access: Settings to open clips.
        gallery: Cache of clip inputs.
    """

    def __init__(
        self,
        order: ExampleOrder,
        *,
        encoder: RequestEncoder,
        access: ClipAccessSettings,
        gallery: Any,
    ) -> None:
        self._order, self._encoder = order, encoder
        self._access, self._gallery = access, gallery
        self._showing: ClipInputLoader | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_showing": None}

    def __call__(self, rows: Sequence[Mapping[str, int]]) -> dict[str, Tensor | Any]:
        """Return the batch of the examples at the indices in `rows`.

        An example that cannot be decoded is excluded from the batch and reported with it. If all fail,
        the next good example replaces them without a loss, so that every device takes part in the step.
        """
        examples = [self._order[row[PLACE]] for row in rows]
        encoded: list[EncodedRequest] = []
        unusable: dict[str, UnusableExample] = {}
        for example in examples:
            request = self._encode(example)
            if isinstance(request, Failure):
                unusable[example.key] = (example.name, request.reason.value, request.detail)
            else:
                encoded.append(request)
        input_spec = bool(encoded)
        if not input_spec:
            encoded = [self._stand_in(rows[-1][PLACE], unusable)]
        batch: dict[str, Any] = self._encoder.collate(encoded, pad="right")
        if not input_spec:
            batch["labels"].fill_(IGNORED)
        return batch | {UNUSABLE: tuple(unusable.items())}

    def load_input(self, example: TrainingExample) -> TrainingExampleInput | Failure:
        """Return the training example as model input, or the failure of its clips."""
        if self._showing is None:
            if get_worker_info() is not None:
                exit_with_parent_process()
            opened = open_media_reader(self._access.settings, trusted=self._access.trusted)
            self._showing = _CachedClipInputLoader(
                reader=opened.__enter__(),
                open_file=partial(provide_local_clip_file, access=self._access),
                find_change=find_clip_change,
                gallery=self._gallery,
                opened=opened,
            )
        return load_training_example_input(example, self._showing, self._encoder)

    def _encode(self, example: TrainingExample) -> EncodedRequest | Failure:
        example_input = self.load_input(example)
        if isinstance(example_input, Failure):
            return example_input
        return self._encoder.encode(example_input.request, example_input.target)

    def _stand_in(self, index: int, unusable: Mapping[str, UnusableExample]) -> EncodedRequest:
        for further in range(index + 1, index + 1 + _MAX_TRIES):
            request = self._encode(self._order[further])
            if not isinstance(request, Failure):
                return request
        raise build_unusable_examples_error(unusable.values(), met=len(unusable) + _MAX_TRIES)


def build_unusable_examples_error(
    unusable: Iterable[Sequence[str]], *, met: int
) -> UnreadableSourceError:
    """Build the error for training data with too many examples that cannot be decoded or encoded."""
    names = list(unusable)
    name, reason, detail = names[0]
    problem = (
        f"{len(names)} of {met} examples cannot be shown, such as {name!r} ({reason}: {detail})"
    )
    return UnreadableSourceError("the data", problem, "Repair those clips, or remove them")


@dataclass(frozen=True, slots=True, kw_only=True)
class _CachedClipInputLoader(ClipInputLoader):
    """Loader of clip inputs that keeps loaded inputs in a cache of limited size."""

    gallery: Any
    opened: AbstractContextManager[MediaReader]
    """Open media reader, kept for the lifetime of this loader; decoding processes exit without closing it."""

    def show(
        self, clips: Sequence[Clip], condition: Condition, wants: frozenset[InputKind]
    ) -> tuple[ClipInput, ...] | Failure:
        key = digest("shown", *(clip.id for clip in clips), str(condition))
        cached: tuple[ClipInput, ...] | None = read_cached_value(self.gallery, key)
        if cached is not None:
            return cached
        loaded = ClipInputLoader.show(self, clips, condition, wants)
        if not isinstance(loaded, Failure):
            write_cached_value(self.gallery, key, loaded)
        return loaded
