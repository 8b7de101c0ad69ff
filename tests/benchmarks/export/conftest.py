"""A benchmark of five small clips that holds a truth for every protocol."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from synthesise import ClipRecipe, synthesise
from unreel.benchmarks.entry import BenchmarkLayout, DeclaredFacts, Entry, Row
from unreel.benchmarks.loader import Benchmark
from unreel.core.box import Box
from unreel.core.clip import Generated, Origin, Real
from unreel.core.judgement import Rating
from unreel.core.span import TimeSpan
from unreel.core.trace import BoxAt, Category, Trace
from unreel.media.reader import MediaReader, run_trusted_task

TRACES = (
    Trace(
        span=TimeSpan(250_000, 500_000),
        track=(BoxAt(250_000, Box(0.25, 0.25, 0.75, 0.75)),),
        categories=frozenset({Category.OBJECT_MERGING}),
        explanation="The ball melts into the wall.",
    ),
    Trace(span=TimeSpan(500_000, 1_000_000)),
)
CLIPS: dict[str, Origin] = {
    "real/a": Real(),
    "real/b": Real(),
    "Veo/a": Generated("Veo"),
    "Veo/b": Generated("Veo"),
    "Sora/a": Generated("Sora", "text"),
}


def entry(number: int, name: str, *, split: str = "test") -> Entry:
    generated = isinstance(CLIPS[name], Generated)
    return Entry(
        name=name,
        location=f"{name}.mp4",
        origin=CLIPS[name],
        split=split,
        group=name.partition("/")[2],
        traces=TRACES if generated else (),
        rating=Rating(score=1 + number, problem="It melts.", adherence="A portion of the video."),
        facts=DeclaredFacts(width=96, height=64, duration_us=1_000_000)
        if generated
        else DeclaredFacts(),
    )


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("clips")
    for seed, name in enumerate(CLIPS):
        path = folder / f"{name}.mp4"
        path.parent.mkdir(exist_ok=True)
        recipe = ClipRecipe(width=96, height=64, rate=Fraction(12), n_frames=12, seed=seed)
        path.write_bytes(synthesise(recipe))
    return folder


@pytest.fixture
def rows() -> list[Row]:
    return [entry(number, name) for number, name in enumerate(CLIPS)]


@pytest.fixture
def benchmark_(root: Path, rows: list[Row]) -> Benchmark:
    def read() -> Iterator[Row]:
        return iter(rows)

    return Benchmark(BenchmarkLayout.LIST, root, read)


@pytest.fixture
def reader() -> MediaReader:
    return MediaReader(run_trusted_task)
