"""Ground truth of a protocol, from the benchmark's data about the clips."""

import typing
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from unreel.core.clip import Origin
from unreel.core.judgement import Label, Rating
from unreel.core.trace import Trace

T_co = TypeVar("T_co", covariant=True)


class KnownTruth(typing.Protocol):
    """Known properties of one clip; an entry of a benchmark is one."""

    @property
    def label(self) -> Label:
        """Return the label of the clip: real or generated."""
        ...

    @property
    def origin(self) -> Origin:
        """Return its origin."""
        ...

    @property
    def rating(self) -> Rating | None:
        """Return the agreed realism rating."""
        ...

    @property
    def traces(self) -> tuple[Trace, ...]:
        """Return the traces, one for each annotation row."""
        ...


class TruthsOf(typing.Protocol[T_co]):
    """Finds the truths of one question."""

    def __call__(self, shown: Sequence[KnownTruth], *, duration_us: int | None) -> tuple[T_co, ...]:
        """Return one ground truth per scored row; `shown` are the clips in order.

        Raises:
            InvalidValueError: They lack the ground truth of the protocol.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolTruths(Generic[T_co]):
    """The ground truths of a protocol."""

    kind: Any
    """Type of one truth: its JSON follows from it."""
    of: TruthsOf[T_co]
