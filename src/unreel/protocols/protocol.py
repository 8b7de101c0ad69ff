"""Interface of a protocol: prompts, parser, ground truth, metrics and texts; found by name."""

import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Generic, Literal, TypeVar

from unreel.core.clip import ClipId, Origin, list_creator_names
from unreel.core.errors import InvalidValueError, UnknownNameError
from unreel.core.estimate import RowCluster, Scorecard
from unreel.core.failure import Failure
from unreel.core.judgement import Label, Pair, Rating
from unreel.core.question import Instrument
from unreel.core.registry import LazyImport, NameRegistry
from unreel.core.safe_text import sanitise_line
from unreel.core.trace import Trace
from unreel.core.verdict import Unparsed
from unreel.protocols.figures import ProtocolMetrics
from unreel.protocols.space import BoxSpace

T_co = TypeVar("T_co", covariant=True)


class ClipGroundTruth(typing.Protocol):
    """Ground truth about one clip: label, origin, rating and traces. Benchmark entries implement it."""

    @property
    def label(self) -> Label:
        """Return the label of the clip: real or generated."""
        ...

    @property
    def origin(self) -> Origin:
        """Return the origin of the clip."""
        ...

    @property
    def rating(self) -> Rating | None:
        """Return the realism rating of the clip on which people agreed; `None` if missing."""
        ...

    @property
    def traces(self) -> tuple[Trace, ...]:
        """Return the traces, one for each annotation row."""
        ...


class GroundTruthFinder(typing.Protocol[T_co]):
    """Function that returns the ground truths of one question."""

    def __call__(
        self, shown: Sequence[ClipGroundTruth], *, duration_us: int | None
    ) -> tuple[T_co, ...]:
        """Return one ground truth per scored row; `shown` are the clips of the question in order.

        Raises:
            InvalidValueError: The clips lack the ground truth that the protocol needs.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolGroundTruth(Generic[T_co]):
    """Ground truth of a protocol: its type, and the function that finds it for a question."""

    kind: Any
    """Type of one truth: its JSON follows from it."""
    of: GroundTruthFinder[T_co]


TruthT = TypeVar("TruthT")
VerdictT = TypeVar("VerdictT")
Part = TypeVar("Part")

NO_VERDICT: Final = "no verdict"
EVEN: Final = 0.5
"""A belief above this one is that the clip is generated."""


def _return_no_details(_verdict: object) -> tuple[tuple[str, str], ...]:
    return ()


def _return_no_answer(_truth: object, _prompt: str, _space: BoxSpace | None) -> str:
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolTexts(Generic[TruthT, VerdictT]):
    """Functions that format a protocol's verdicts for display, and answers to its prompts."""

    decides: str
    """The part of a verdict that it asks for before all else: without it there is no verdict."""
    say: Callable[[Any], str]
    """That part in a word or two."""
    right: Callable[[TruthT], str]
    """The answer that a truth calls for, in the form that is asked for."""
    phrase: Callable[[Sequence[float], str], str]
    """The answer of someone who holds each clip shown to be generated with that probability, in the form
    that the prompt of that name asks for."""
    details: Callable[[VerdictT], Iterable[tuple[str, str]]] = _return_no_details
    """What else a readable verdict says, by name; what it excludes is named too."""
    teaches: frozenset[str] = frozenset()
    """The prompts whose answers follow from a truth alone; the others ask for what no truth holds."""
    write: Callable[[TruthT, str, BoxSpace | None], str] = _return_no_answer
    """The whole answer to the prompt of that name, as `teach` gives it."""

    def teach(self, truth: TruthT, prompt: str, space: BoxSpace | None) -> str:
        """Return the training answer for `truth`, in the format that the prompt called `prompt` requests.

        The strict parser reads the content of `truth` from this answer. Boxes are written in `space`.

        Raises:
            UnknownNameError: The prompt requests a part that no truth contains.
            InvalidValueError: `truth` lacks a requested part, or the format cannot express it.
        """
        if prompt not in self.teaches:
            kind = "prompt that can be taught"
            raise UnknownNameError(kind, prompt, sorted(self.teaches))
        return self.write(truth, prompt, space)

    def decision(self, verdict: VerdictT) -> Any:
        """Return the deciding part of the verdict: a label, a score, a position in a pair, or `Unparsed`."""
        return getattr(verdict, self.decides)

    def headline(self, verdict: VerdictT) -> str:
        """Return the main part of a verdict as text, or `no verdict` if it could not be parsed."""
        part = self.decision(verdict)
        return NO_VERDICT if isinstance(part, Unparsed) else self.say(part)


def format_label(label: Label) -> str:
    """Return `real` or `generated`."""
    return label.value


def format_part_or_reason(part: Part | Unparsed, write: Callable[[Part], str]) -> str:
    """Return a part of a verdict as text by `write`, or the reason why it could not be parsed."""
    if not isinstance(part, Unparsed):
        return write(part)
    found = f": {sanitise_line(part.found)!r}" if part.found else ""
    return f"not given ({part.reason.value}{found})"


def collapse_whitespace(text: str) -> str:
    """Return `text` with line breaks and repeated spaces replaced by one space."""
    return " ".join(text.split())


def require_parsed_as_meant(*, said: object, meant: object) -> None:
    """Raise if the parsed training answer `said` differs from the intended content `meant`.

    That happens if a text contains tags or phrases of the answer's format.
    """
    if said != meant:
        msg = "its words repeat marks of the answer's form. Take such marks out of the text"
        raise InvalidValueError(msg)


T = TypeVar("T")
V = TypeVar("V")

Mode = Literal["strict", "lenient"]
"""`strict` reads the form that was asked for; `lenient` reads that, or else its usual variations."""
Subject = Literal["clip", "pair"]
"""What a question is about."""


def asks_to_think(prompt: str) -> bool:
    """Return whether a prompt asks for thoughts before the answer, that is, contains `<think>`."""
    return "<think>" in prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolPrompt:
    """Text of a protocol's question. Any change of the text needs a new protocol version."""

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
class AnswerContext:
    """Context for parsing an answer: strictness, prompt variant and coordinate space of boxes."""

    mode: Mode = "strict"
    prompt: str = "paper"
    """Name of the variant that was asked: it decides which form the answer should have."""
    space: BoxSpace | None = None
    """Coordinates of the boxes, for a protocol that asks for one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredQuestion(Generic[T, V]):
    """One question with its subject, its ground truth and the parsed answer or failure."""

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
        """Return the creator of the clip, and creator with setting if known; empty for a real clip."""
        return list_creator_names(self.creator, self.setting)

    @property
    def cluster(self) -> RowCluster:
        """Return the cluster of the row for resampling, because clips of a scene or creator are dependent."""
        scene = f"source {self.source}" if self.source else str(self.subject)
        return RowCluster(scene, self.creator)


class ProtocolScorer(typing.Protocol[T, V]):
    """Function that computes a scorecard from rows; it depends only on the rows and the seed."""

    def __call__(self, rows: Sequence[ScoredQuestion[T, V]], *, seed: int) -> Scorecard:
        """Compute the scorecard of `rows`; failures are counted separately from answers."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol(Generic[T, V]):
    """A protocol: a question about clips with its prompts, parser, ground truth, texts and metrics."""

    instrument: Instrument
    title: str
    """What it asks, for the head of a page."""
    prompts: Mapping[str, ProtocolPrompt]
    parse: Callable[[str, AnswerContext], V]
    """Reads any text without raising; what the text does not hold is `Unparsed`."""
    score: ProtocolScorer[T, V]
    truths: ProtocolGroundTruth[T]
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
        """Return the prompt variant of this name.

        Raises:
            UnknownNameError: The protocol has no prompt variant of this name.
        """
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
    """Return the current version of the protocol with this name."""
    return PROTOCOLS.load(name)


def list_protocol_names(subject: Subject | None = None) -> tuple[str, ...]:
    """Return the names of all protocols, or of those about `subject`, in display order.

    Protocols of other packages are always listed, because they are not loaded here.
    """
    ours = tuple(PROTOCOLS.entries)
    brought = tuple(name for name in PROTOCOLS.names() if name not in ours)
    if subject is None:
        return ours + brought
    return tuple(name for name in ours if get_protocol(name).subject == subject) + brought
