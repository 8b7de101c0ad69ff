"""Interface of a protocol: prompts, parser, ground truth, metrics and texts; found by name."""

import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Generic, Literal, TypeVar

from unreel.core.clip import ClipId, list_makers
from unreel.core.cluster import RowCluster
from unreel.core.errors import UnknownNameError
from unreel.core.estimate import Scorecard
from unreel.core.failure import Failure
from unreel.core.judgement import Pair
from unreel.core.question import Instrument
from unreel.core.registry import LazyImport, NameRegistry
from unreel.protocols.figures import ProtocolMetrics
from unreel.protocols.space import BoxSpace
from unreel.protocols.truths import ProtocolTruths
from unreel.protocols.verdict_text import ProtocolTexts

T = TypeVar("T")
V = TypeVar("V")

Mode = Literal["strict", "lenient"]
"""`strict` reads the form that was asked for; `lenient` reads that, or else its usual variations."""
Subject = Literal["clip", "pair"]
"""What a question is about."""


def asks_to_think(prompt: str) -> bool:
    """Return whether the text asks for thoughts before the answer: all our prompts use this tag."""
    return "<think>" in prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolPrompt:
    """A text put to a reviewer. A changed word is a changed measurement: it needs a new version."""

    text: str
    source: str
    """The paper that prints it, or the one that describes it."""
    wording: Literal["paper", "derived", "own"] = "paper"
    """`paper`: byte for byte as printed; `derived`: with sentences left out, swapped or added, or from a
    quotation whose printed bytes are not at hand; `own`: written for unreel."""

    @property
    def asks_to_think(self) -> bool:
        """Return whether it asks for thoughts before the answer."""
        return asks_to_think(self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParserOptions:
    """Parser options: all information that the text of an answer does not contain."""

    mode: Mode = "strict"
    prompt: str = "paper"
    """Name of the variant that was asked: it decides which form the answer should have."""
    space: BoxSpace | None = None
    """Coordinates of the boxes, for a protocol that asks for one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredQuestion(Generic[T, V]):
    """One question that was asked: its subject, the ground truth and the outcome."""

    subject: ClipId | Pair
    truth: T
    outcome: V | Failure
    text_score: float | None = None
    """Similarity of the answer's text to the ground truth, at most 1: from a judge in `trace`, a
    cosine of sentence embeddings in `realism`. `None` if unmeasured, which is never 0.
    """
    source: str = ""
    """Scene of the clip; "" if unknown."""
    creator: str = ""
    """Creator of the clip, or of the generated one of a pair; "" for a real clip, or if unknown."""
    setting: str = ""
    """In which setting it was made."""
    difficulty: str = ""
    """How hard its makers hold the clip to be, in their words; "" where they do not say."""

    @property
    def makers(self) -> tuple[str, ...]:
        """Return the creator, and its setting if known; empty for a real clip."""
        return list_makers(self.creator, self.setting)

    @property
    def cluster(self) -> RowCluster:
        """Return the cluster that is resampled for every interval: clips of one scene or one creator are dependent."""
        scene = f"source {self.source}" if self.source else str(self.subject)
        return RowCluster(scene, self.creator)


class ProtocolScorer(typing.Protocol[T, V]):
    """Turns rows into a scorecard; the same rows and seed give the same card."""

    def __call__(self, rows: Sequence[ScoredQuestion[T, V]], *, seed: int) -> Scorecard:
        """Score `rows`; failures are counted and never taken for answers."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol(Generic[T, V]):
    """A question with its subject, prompts, parser, ground truth, texts and metrics."""

    instrument: Instrument
    title: str
    """What it asks, for the head of a page."""
    prompts: Mapping[str, ProtocolPrompt]
    parse: Callable[[str, ParserOptions], V]
    """Reads any text without raising; what the text does not hold is `Unparsed`."""
    score: ProtocolScorer[T, V]
    truths: ProtocolTruths[T]
    wording: ProtocolTexts[T, V]
    figures: ProtocolMetrics
    subject: Subject = "clip"
    tells_sides: bool = False
    """Whether its answers say which side a clip is on, so that creators and reviewers can play by it."""
    needs_box_space: bool = False
    """Whether it asks for a box, so that the space of a reviewer's boxes must be declared."""
    shows_times: bool = False
    """Whether it asks for a time, so that each frame has its timestamp by default."""
    sampling: str = "uniform-8"
    """Default sampling plan."""
    packed: Callable[[], tuple[Any, Any]] | None = None
    """Makes two columns, of truths and of outcomes, that hold what `score` needs and no words, where objects
    would take too much memory; `None`: objects are held. See `unreel.evaluation.scored_columns`."""
    reads_since: int | None = None
    """The first version whose answers are read and scored by the rules of this one; `None`: this one. What
    such versions asked is asked no more."""

    @property
    def n_clips(self) -> int:
        """Return the number of clips per question."""
        return 2 if self.subject == "pair" else 1

    @property
    def needs_facts(self) -> bool:
        """Return whether its ground truth depends on the frame size or the clip length."""
        return self.needs_box_space or self.shows_times

    @property
    def read_instruments(self) -> tuple[Instrument, ...]:
        """Return the protocol versions whose answers can be scored, with the current version last."""
        name, current = self.instrument.protocol, self.instrument.version
        return tuple(Instrument(name, v) for v in range(self.reads_since or current, current + 1))

    def prompt(self, variant: str) -> ProtocolPrompt:
        """Return the prompt called `variant`."""
        if variant not in self.prompts:
            kind = f"{self.instrument.protocol} prompt"
            raise UnknownNameError(kind, variant, sorted(self.prompts))
        return self.prompts[variant]


PROTOCOLS: Final[NameRegistry[Protocol[Any, Any]]] = NameRegistry(
    "protocol",
    {
        "trace": LazyImport("unreel.protocols.trace:TRACE"),
        "realism": LazyImport("unreel.protocols.realism:REALISM"),
        "reality": LazyImport("unreel.protocols.reality:REALITY"),
        "preference": LazyImport("unreel.protocols.preference:PREFERENCE"),
        "locate": LazyImport("unreel.protocols.locate:LOCATE"),
    },
    group="unreel.protocols",
)
REVIEWED: Final = ("trace", "realism")
"""Default protocols of a review."""
TASKED: Final = "reality"
"""Default protocol of an inspect_ai task."""
VOTED: Final = "reality"
"""What people's votes answer."""


@cache
def get_protocol(name: str) -> Protocol[Any, Any]:
    """Return the protocol of that name at its current version."""
    return PROTOCOLS.load(name)


def protocol_names(subject: Subject | None = None) -> tuple[str, ...]:
    """Return the protocol names in display order: all, or those about `subject`.

    Names of other packages are listed without loading them, regardless of their subject.
    """
    ours = tuple(PROTOCOLS.entries)
    brought = tuple(name for name in PROTOCOLS.names() if name not in ours)
    if subject is None:
        return ours + brought
    return tuple(name for name in ours if get_protocol(name).subject == subject) + brought
