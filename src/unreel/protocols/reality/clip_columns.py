"""Columns of the clips in the questions: a scorecard of ten million clips needs no object per clip."""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from unreel.core.clip import Origin, get_creator, get_setting, list_makers
from unreel.core.estimate import Coverage
from unreel.core.failure import Failure
from unreel.core.judgement import Label
from unreel.core.verdict import RealityVerdict, Unparsed
from unreel.protocols.detection import CALLS, LabelPredictions, Said
from unreel.protocols.protocol import ScoredQuestion
from unreel.stats.cluster_ids import ClusterIdBuilder
from unreel.stats.sample import Array, BoolArray, ClusterIds

RealityRow = ScoredQuestion[Origin, RealityVerdict]
_NOT_ASKED, _UNTOLD = -2.0, -1.0
"""In the place of a probability: nobody asked for one, or none could be read."""
_KINDS_KEPT: Final = 4096
"""Different outcomes that are remembered: most answers say one of few things."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AskedClips:
    """Clips of the questions, and their outcomes."""

    ties: ClusterIds
    """What each is drawn with: its source, or the clip alone, and who made it."""
    kinds: tuple[tuple[str, ...], ...]
    """Creators of the clips, with the setting if known; real clips have none."""
    kind: npt.NDArray[np.int32]
    """Of `kinds`, which each clip has."""
    said: Said
    """As `CALLS` has it."""
    answered: BoolArray
    """Whether the question was answered, readably or not."""
    belief: Array
    """Probability of being generated, from each answer."""

    def only(self, chosen: BoolArray) -> "AskedClips":
        """Return the chosen clips; return this same object if all clips are chosen."""
        if chosen.all():
            return self
        return replace(
            self,
            ties=self.ties.only(chosen),
            kind=self.kind[chosen],
            said=self.said[chosen],
            answered=self.answered[chosen],
            belief=self.belief[chosen],
        )

    @property
    def makers(self) -> list[str]:
        """Return all makers, sorted by name."""
        return sorted({maker for makers in self.kinds for maker in makers})

    @property
    def creators(self) -> list[str]:
        """Return all creators of the clips, independent of the setting, sorted by name."""
        return sorted({makers[0] for makers in self.kinds if makers})

    def made_by(self, maker: str | None) -> BoolArray:
        """Return a mask of the clips that `maker` made; `None`: of the real ones."""
        own = [maker in makers if maker else not makers for makers in self.kinds]
        chosen: BoolArray = np.array(own, np.bool_)[self.kind]
        return chosen

    @property
    def generated(self) -> BoolArray:
        """Return a mask of the generated clips."""
        return ~self.made_by(None)

    @property
    def valid(self) -> BoolArray:
        """Return a mask of the clips with a predicted label."""
        valid: BoolArray = self.said != CALLS[None]
        return valid

    @property
    def right(self) -> Array:
        """Return 1 for each correct answer and 0 for each wrong or missing answer."""
        right: Array = (self.said == self.generated).astype(np.float64)
        return right

    @property
    def calls(self) -> LabelPredictions:
        """Return the true and predicted labels."""
        return LabelPredictions(self.ties, self.generated, self.said)

    @property
    def coverage(self) -> Coverage:
        """Return the number of clips with a predicted label."""
        return Coverage(parsed=int(self.valid.sum()), asked=len(self.said))

    @property
    def believed(self) -> BoolArray:
        """Return a mask of the clips for which a probability was requested."""
        believed: BoolArray = self.belief != _NOT_ASKED
        return believed

    @property
    def told(self) -> BoolArray:
        """Return a mask of the clips with a reported probability."""
        return self.belief >= 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RealityCounts:
    """All that a scorecard needs of its rows."""

    asked: AskedClips
    failures: Counter[str]
    """Rows without an answer, by reason."""
    unparsed: Counter[str]
    """Parts that could not be read, as `part: reason`."""


def count_rows(rows: Iterable[RealityRow]) -> RealityCounts:
    """Return the clips of `rows` as columns, and counts of failures and unreadable parts, in one pass."""
    tying, kinds = ClusterIdBuilder(), dict[tuple[str, ...], int]()
    kind, said, answered, belief = array("i"), array("b"), bytearray(), array("d")
    failures, unparsed = Counter[str](), Counter[str]()
    origins: dict[Origin, tuple[str, int]] = {}
    outcomes: dict[Any, tuple[int, float, tuple[str, ...]]] = {}
    for row in rows:
        truth, outcome = row.truth, row.outcome
        if truth not in origins:
            makers = list_makers(get_creator(truth), get_setting(truth))
            origins[truth] = get_creator(truth), kinds.setdefault(makers, len(kinds))
        creator, number = origins[truth]
        tying.add(row.cluster.scene, row.creator or creator)
        kind.append(number)
        answered.append(not isinstance(outcome, Failure))
        if isinstance(outcome, Failure):
            failures[outcome.reason.value] += 1
            said.append(CALLS[None])
            belief.append(_NOT_ASKED)
            continue
        if outcome not in outcomes:
            if len(outcomes) >= _KINDS_KEPT:
                outcomes.clear()
            label = outcome.label if isinstance(outcome.label, Label) else None
            outcomes[outcome] = (
                CALLS[label],
                _get_generated_probability(outcome),
                tuple(_iter_unparsed_parts(outcome)),
            )
        call, sure, unread = outcomes[outcome]
        if unread:
            unparsed.update(unread)
        said.append(call)
        belief.append(sure)
    asked = AskedClips(
        ties=tying.ties(),
        kinds=tuple(kinds),
        kind=np.frombuffer(kind, np.int32),
        said=np.frombuffer(said, np.int8),
        answered=np.frombuffer(answered, np.bool_),
        belief=_read_probability_column(belief),
    )
    return RealityCounts(asked=asked, failures=failures, unparsed=unparsed)


def _read_probability_column(belief: "array[float]") -> Array:
    """Return the probabilities; a single value if none was requested."""
    column = np.frombuffer(belief, np.float64)
    if (column == _NOT_ASKED).all():
        return np.broadcast_to(np.float64(_NOT_ASKED), column.shape)
    return column


def _get_generated_probability(verdict: RealityVerdict) -> float:
    if verdict.confidence is None:
        return _NOT_ASKED
    p = verdict.p_generated
    return _UNTOLD if p is None else p


def _iter_unparsed_parts(verdict: RealityVerdict) -> Iterator[str]:
    for name, part in (("label", verdict.label), ("confidence", verdict.confidence)):
        if isinstance(part, Unparsed):
            yield f"{name}: {part.reason.value}"
