"""Tasks and values for the tests of screens."""

from fractions import Fraction

from hypothesis import strategies as st

from unreel.annotation.campaign import (
    AnnotationInterface,
    AnnotationTask,
    AnnotatorClipCopy,
    TraceAnswer,
)
from unreel.annotation.interfaces.label_studio_tasks import (
    ScreenKeyFrame,
    convert_key_frames_to_traces,
)
from unreel.core.box import Box
from unreel.core.content_ids import compute_placeholder_clip_id
from unreel.core.judgement import ErrorFamily, Label, Rating
from unreel.core.safe_text import sanitise_lines
from unreel.core.trace import Category, Trace

RATES = (Fraction(24), Fraction(25), Fraction(30000, 1001), Fraction(24000, 1001), Fraction(60))


def copy_of(
    name: str, *, rate: Fraction = Fraction(30000, 1001), n_frames: int = 61
) -> AnnotatorClipCopy:
    return AnnotatorClipCopy(
        clip=compute_placeholder_clip_id(name),
        location=f"{compute_placeholder_clip_id(name)}.mp4",
        rate=rate,
        n_frames=n_frames,
        width=480,
        height=320,
    )


def single(**kinds: object) -> AnnotationTask:
    return AnnotationTask(names=("one",), copies=(copy_of("one"),), **kinds)  # type: ignore[arg-type]


def pair(**kinds: object) -> AnnotationTask:
    copies = (copy_of("one", rate=Fraction(24)), copy_of("two", rate=Fraction(25)))
    return AnnotationTask(names=("one", "two"), copies=copies, **kinds)  # type: ignore[arg-type]


def task_for(interface: AnnotationInterface) -> AnnotationTask:
    return pair() if interface is AnnotationInterface.PREFERENCE else single()


copies = st.builds(
    lambda rate, n_frames: copy_of("one", rate=rate, n_frames=n_frames),
    st.sampled_from(RATES),
    st.integers(1, 400),
)
_places = st.tuples(st.integers(0, 999_000), st.integers(1_000, 1_000_000)).map(
    lambda place: (place[0] / 1e6, min(1.0, (place[0] + place[1]) / 1e6))
)
boxes = st.builds(lambda x, y: Box(x[0], y[0], x[1], y[1]), _places, _places)
texts = st.text(max_size=60).map(lambda text: sanitise_lines(text).strip())


@st.composite
def key_frames(draw: st.DrawFn, copy: AnnotatorClipCopy) -> list[ScreenKeyFrame]:
    """Key frames as a screen can hold them, gaps and single frames among them."""
    frames = draw(st.sets(st.integers(1, copy.n_frames), min_size=1, max_size=6))
    return [
        ScreenKeyFrame(frame=frame, box=draw(boxes), enabled=draw(st.booleans()))
        for frame in sorted(frames)
    ]


@st.composite
def traces(draw: st.DrawFn, copy: AnnotatorClipCopy) -> tuple[Trace, ...]:
    """The traces of one box."""
    categories = st.frozensets(st.sampled_from(Category), min_size=1)
    return convert_key_frames_to_traces(
        draw(key_frames(copy)), copy, categories=draw(categories), explanation=draw(texts)
    )


@st.composite
def traced(draw: st.DrawFn, copy: AnnotatorClipCopy) -> TraceAnswer:
    found = [trace for _ in range(draw(st.integers(0, 3))) for trace in draw(traces(copy))]
    label = Label.GENERATED if found else draw(st.sampled_from([Label.REAL, None]))
    return TraceAnswer(traces=tuple(found), label=label)


ratings = st.builds(
    Rating,
    score=st.integers(1, 5),
    problem=texts.filter(bool),
    adherence=texts.filter(bool),
    family=st.sampled_from([None, *ErrorFamily]),
)
