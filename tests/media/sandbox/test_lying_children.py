"""Children that lie: whatever one says, its file fails, and the file after it is answered."""

import io
import resource
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import pytest
from lies import lying
from lying_tasks import LIES

from pace import slowness
from stalls import Stalls
from synthesise import ClipRecipe, synthesise
from unreel.core.clip import ClipFacts
from unreel.core.failure import Failure, FailureReason
from unreel.media.overlay import OverlayCommentary, ReviewerOverlayLane
from unreel.media.reader import MediaReader
from unreel.media.render import CroppedFrameRange, NormalisedClipFormat
from unreel.media.sandbox import FileSandbox, SandboxLimits
from unreel.report.review import provenance
from unreel.report.review.provenance import C2paManifestState, C2paReadResult, read_c2pa_manifest

SECONDS = 2
MOST_GROWTH_KB = 1 << 20

_SAID = OverlayCommentary(
    lanes=(ReviewerOverlayLane(text="somebody: real"),), duration_us=1_000_000
)
ASK: dict[str, Callable[[MediaReader, Path], object]] = {
    "probe": lambda reader, path: reader.probe(path),
    "frames": lambda reader, path: reader.frames(path, sampling="uniform-4", longest_side=64),
    "sound": lambda reader, path: reader.sound(path),
    "scan": lambda reader, path: reader.scan(path),
    "render": lambda reader, path: reader.render(
        path, CroppedFrameRange(first_frame=0, end_frame=4)
    ),
    "instants": lambda reader, path: reader.frames_at(path, [0, 100_000, 200_000, 300_000]),
    "annotate": lambda reader, path: reader.annotate(path, _SAID, into=io.BytesIO()),
    "manifest": lambda _, path: _read_manifest(path),
    "normalise": lambda reader, path: reader.normalise(
        path, NormalisedClipFormat(width=32, height=32, rate=Fraction(4), crf=40)
    ),
}


def _read_manifest(path: Path) -> C2paReadResult | Failure:
    pytest.importorskip("c2pa", reason="c2pa-python is not installed: unreel[provenance]")
    found = read_c2pa_manifest(path)
    if found.state is C2paManifestState.UNREADABLE:
        return Failure(FailureReason.WORKER_DIED, found.says)
    return found


@pytest.fixture(autouse=True)
def _lying_about_origin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provenance, "_TASKS", "lying_manifests:TASKS")


@pytest.fixture(scope="module")
def liars() -> Iterator[MediaReader]:
    with FileSandbox(SandboxLimits(seconds=SECONDS), tasks="lying_tasks:TASKS") as sandbox:
        yield MediaReader(sandbox)


@pytest.fixture(scope="module")
def clip_bytes() -> bytes:
    return synthesise(ClipRecipe(width=64, height=64, n_frames=24, tone_hz=440))


@pytest.fixture
def innocent(tmp_path: Path, clip_bytes: bytes) -> Path:
    path = tmp_path / "innocent.mp4"
    path.write_bytes(clip_bytes)
    return path


def test_without_a_lie_every_task_is_answered(liars: MediaReader, innocent: Path) -> None:
    for ask in ASK.values():
        assert not isinstance(ask(liars, innocent), Failure)


@pytest.mark.parametrize("name", LIES)
def test_a_lie_is_the_failure_of_its_file_and_of_no_other(
    liars: MediaReader, tmp_path: Path, clip_bytes: bytes, innocent: Path, name: str, stalls: Stalls
) -> None:
    told = LIES[name]
    path = tmp_path / "lying.mp4"
    path.write_bytes(lying(name, clip_bytes))
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.monotonic()
    found = ASK[told.task](liars, path)
    taken = time.monotonic() - started
    grown_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb
    if not told.quiet:
        assert isinstance(found, Failure), found
        assert "the task failed" not in found.detail, "the lie was not told"
        assert found.detail.isprintable()
        assert len(found.detail) <= 400
    # Who reads a manifest starts a zygote of its own.
    assert taken < SECONDS + (20 if told.task == "manifest" else 3) * slowness() + stalls.seconds()
    assert grown_kb < MOST_GROWTH_KB
    assert isinstance(liars.probe(innocent), ClipFacts)


def test_a_caller_without_memory_for_a_reply_has_a_failure_and_goes_on(
    liars: MediaReader, tmp_path: Path, clip_bytes: bytes, innocent: Path
) -> None:
    assert isinstance(liars.probe(innocent), ClipFacts)
    path = tmp_path / "lying.mp4"
    path.write_bytes(lying("blobs-263-mb", clip_bytes))
    limits = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (64 << 20), limits[1]))
    try:
        found = liars.probe(path)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)
    assert isinstance(found, Failure)
    assert found.reason.value == "out-of-memory"
    assert isinstance(liars.probe(innocent), ClipFacts)
