"""Made-up tasks and opinions, and strategies that draw them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from hypothesis import strategies as st

from unreel.annotation.campaign import (
    AnnotationTask,
    AnnotatorClipCopy,
    AnyValue,
    RatingAnswer,
    TraceAnswer,
)
from unreel.core.box import Box
from unreel.core.content_ids import compute_placeholder_clip_id
from unreel.core.judgement import Label, Rating
from unreel.core.span import TimeSpan
from unreel.core.trace import BoxAt, Category, Trace

N_FRAMES = 90


@dataclass(frozen=True, slots=True, kw_only=True)
class UnstoredOpinion:
    """An opinion that is not stored in a ledger."""

    annotator: str
    task: AnnotationTask
    value: AnyValue
    submitted_us: int = 0


def task(name: str = "a", *, known: AnyValue | None = None) -> AnnotationTask:
    """A task about one clip of three seconds."""
    copy = AnnotatorClipCopy(
        clip=compute_placeholder_clip_id(name),
        location=f"{name}.mp4",
        rate=Fraction(30000, 1001),
        n_frames=N_FRAMES,
        width=640,
        height=360,
    )
    return AnnotationTask(names=(name,), copies=(copy,), known=known)


def said(
    values: Mapping[str, AnyValue], about: AnnotationTask | None = None
) -> list[UnstoredOpinion]:
    """What several people said of one task."""
    about = about or task()
    return [
        UnstoredOpinion(annotator=who, task=about, value=value) for who, value in values.items()
    ]


def rated(score: int | None, problem: str = "") -> RatingAnswer:
    """A score, or `None` to discard the clip."""
    return RatingAnswer(rating=None if score is None else Rating(score=score, problem=problem))


def trace(
    first: int,
    last: int,
    box: tuple[float, float, float, float] = (0.1, 0.1, 0.4, 0.5),
    kinds: Sequence[Category] = (),
    why: str = "",
) -> Trace:
    """A fault that stands still from frame `first` to frame `last`, both shown."""
    copy = task().copies[0]
    span = TimeSpan(copy.at_us(first), copy.at_us(last + 1))
    track = (BoxAt(span.start_us, Box(*box)),)
    return Trace(span=span, track=track, categories=frozenset(kinds), explanation=why)


def traced(*traces: Trace, label: Label | None = Label.GENERATED) -> TraceAnswer:
    """Everything that one person marked."""
    return TraceAnswer(traces=traces, label=label)


@st.composite
def boxes(draw: st.DrawFn) -> Box:
    """Any box, on a grid of hundredths."""
    x0, y0 = draw(st.integers(0, 98)), draw(st.integers(0, 98))
    x1, y1 = draw(st.integers(x0 + 1, 100)), draw(st.integers(y0 + 1, 100))
    return Box(x0 / 100, y0 / 100, x1 / 100, y1 / 100)


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    """Any trace of the clip of `task`, moving or still, marked or not."""
    copy = task().copies[0]
    first = draw(st.integers(0, N_FRAMES - 1))
    last = draw(st.integers(first, N_FRAMES - 1))
    frames = draw(st.sets(st.integers(first, last), max_size=4))
    return Trace(
        span=TimeSpan(copy.at_us(first), copy.at_us(last + 1)),
        track=tuple(BoxAt(copy.at_us(frame), draw(boxes())) for frame in sorted(frames)),
        categories=draw(st.frozensets(st.sampled_from(Category), max_size=3)),
        explanation=draw(st.sampled_from(["the hand melts", "the cup floats"])),
    )


@st.composite
def traced_values(draw: st.DrawFn) -> TraceAnswer:
    """Whatever somebody may say of the clip of `task`."""
    found = draw(st.lists(traces(), max_size=3))
    label = Label.GENERATED if found else draw(st.sampled_from([*Label, None]))
    return TraceAnswer(traces=tuple(found), label=label)


def rated_values() -> st.SearchStrategy[RatingAnswer]:
    """Any score or a discard, with one of a few rationales."""
    texts = st.sampled_from(["", "the hand melts", "the cup floats"])
    return st.builds(rated, st.one_of(st.none(), st.integers(1, 5)), texts)
