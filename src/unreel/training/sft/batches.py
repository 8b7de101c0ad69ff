"""Batches for a model: examples are shown, encoded and collated in the trainer's processes.

An `ExampleCollator` is sent to the decoding workers. Each worker opens its own reader at the
first call, and all workers share one cache.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from torch import Tensor
from torch.utils.data import get_worker_info

from unreel.core.clip import Clip
from unreel.core.errors import UnreadableSourceError
from unreel.core.failure import Failure
from unreel.core.identity import digest
from unreel.core.question import Condition
from unreel.engine.storage_access import StorageAccess, find_change, local_copy
from unreel.media.access import media_reader
from unreel.media.reader import MediaReader
from unreel.reviewers.ask import PresentationSettings
from unreel.reviewers.contract import ClipInput, InputKind
from unreel.reviewers.local.encoder import IGNORED, EncodedRequest, RequestEncoder
from unreel.training.examples.example import ShownExample, TrainingExample
from unreel.training.examples.presentation import lay_out
from unreel.training.sft.example_order import ExampleOrder
from unreel.training.sft.lru_cache import keep, recall, serve_parent

PLACE: Final = "place"
UNSHOWN: Final = "unshown"
_MOST_TRIES: Final = 100


Told = tuple[str, str, str]
"""An example that could not be learned from: its name, the reason and the detail."""


class ExampleCollator:
    """Collator of a batch from indices of the training order.

    Args:
        order: Example at each index.
        encoder: Encoder of requests.
        access: Access to clips.
        gallery: Cache of inputs.
    """

    def __init__(
        self,
        order: ExampleOrder,
        *,
        encoder: RequestEncoder,
        access: StorageAccess,
        gallery: Any,
    ) -> None:
        self._order, self._encoder = order, encoder
        self._access, self._gallery = access, gallery
        self._showing: PresentationSettings | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_showing": None}

    def __call__(self, rows: Sequence[Mapping[str, int]]) -> dict[str, Tensor | Any]:
        """Return the batch of the examples at those indices.

        A failed example is excluded from the batch and reported with it. If all fail, the next good
        one replaces them without a loss, so that every device takes part in the step.
        """
        examples = [self._order[row[PLACE]] for row in rows]
        encoded: list[EncodedRequest] = []
        unshown: dict[str, Told] = {}
        for example in examples:
            found = self._encode(example)
            if isinstance(found, Failure):
                unshown[example.key] = (example.name, found.reason.value, found.detail)
            else:
                encoded.append(found)
        taught = bool(encoded)
        if not taught:
            encoded = [self._stand_in(rows[-1][PLACE], unshown)]
        batch: dict[str, Any] = self._encoder.collate(encoded, pad="right")
        if not taught:
            batch["labels"].fill_(IGNORED)
        return batch | {UNSHOWN: tuple(unshown.items())}

    def lesson(self, example: TrainingExample) -> ShownExample | Failure:
        """Return the example as shown, or why it cannot be shown."""
        if self._showing is None:
            self._showing = _open_presentation(self._access, self._gallery)
        return lay_out(example, self._showing, self._encoder)

    def _encode(self, example: TrainingExample) -> EncodedRequest | Failure:
        lesson = self.lesson(example)
        if isinstance(lesson, Failure):
            return lesson
        return self._encoder.encode(lesson.sheet, lesson.target)

    def _stand_in(self, index: int, unshown: Mapping[str, Told]) -> EncodedRequest:
        for further in range(index + 1, index + 1 + _MOST_TRIES):
            found = self._encode(self._order[further])
            if not isinstance(found, Failure):
                return found
        raise build_too_few_error(unshown.values(), met=len(unshown) + _MOST_TRIES)


def build_too_few_error(unshown: Iterable[Sequence[str]], *, met: int) -> UnreadableSourceError:
    """Build the error for data with too many examples that cannot be shown."""
    names = list(unshown)
    name, reason, detail = names[0]
    problem = (
        f"{len(names)} of {met} examples cannot be shown, such as {name!r} ({reason}: {detail})"
    )
    return UnreadableSourceError("the data", problem, "Repair those clips, or remove them")


@dataclass(frozen=True, slots=True, kw_only=True)
class _CachedClips(PresentationSettings):
    """Clip inputs, cached while there is room."""

    gallery: Any
    opened: AbstractContextManager[MediaReader]
    """Held while this lives: a process that decodes ends without a word."""

    def show(
        self, clips: Sequence[Clip], condition: Condition, wants: frozenset[InputKind]
    ) -> tuple[ClipInput, ...] | Failure:
        key = digest("shown", *(clip.id for clip in clips), str(condition))
        kept: tuple[ClipInput, ...] | None = recall(self.gallery, key)
        if kept is not None:
            return kept
        shown = PresentationSettings.show(self, clips, condition, wants)
        if not isinstance(shown, Failure):
            keep(self.gallery, key, shown)
        return shown


def _open_presentation(access: StorageAccess, gallery: Any) -> PresentationSettings:
    """Return the presentation of clips in this process."""
    if get_worker_info() is not None:
        serve_parent()
    opened = media_reader(access.settings, trusted=access.trusted)
    return _CachedClips(
        reader=opened.__enter__(),
        open_file=partial(local_copy, access=access),
        find_change=find_change,
        gallery=gallery,
        opened=opened,
    )
