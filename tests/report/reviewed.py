"""Reviews for the tests of pages: real clips, recorded answers, no network."""

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

from unreel.asking.asker import Asker
from unreel.core.failure import Failure
from unreel.core.settings import EnvironmentSettings
from unreel.core.trace import Trace
from unreel.evaluation.review import Review, build_review_questions, probe_clip_file, review_clip
from unreel.evaluation.sample_review import SampleReviewer
from unreel.media.access import open_media_reader
from unreel.media.reader import OnFrames
from unreel.report.review.evidence_page import (
    EvidenceFiles,
    EvidencePageContext,
    write_evidence_files,
)
from unreel.report.review.file_origin import build_file_origin_checks
from unreel.report.review.provenance import (
    C2paManifestState,
    C2paReadResult,
    FileOriginCheck,
    build_skipped_watermark_check,
)
from unreel.reviewers.factory import ReviewerWithPrices

NO_MANIFEST = C2paReadResult(
    state=C2paManifestState.ABSENT, says="The file carries no credentials."
)
DRAWN = build_skipped_watermark_check("the clip was drawn.")
MADE_AT = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)


def trace_text(box: tuple[float, ...], *, start_s: float, why: str = "it bends") -> str:
    corners = ", ".join(f"{edge:g}" for edge in box)
    return (
        f"FAKE <coordinates>[{corners}]</coordinates> <start_time>{start_s}</start_time> "
        f"<explanation>{why}</explanation>"
    )


def review_with(
    file: Path, said: Mapping[str, Mapping[str, str]], *, sampling: str = "uniform-4"
) -> Review:
    """What reviewers of those names say of the clip; each text answers one instrument."""
    protocols = list(dict.fromkeys(name for texts in said.values() for name in texts))
    inquiry = build_review_questions(protocols, {"sampling": sampling})
    reviewers = [ReviewerWithPrices(SampleReviewer(name, texts)) for name, texts in said.items()]

    async def go() -> Review:
        with open_media_reader(EnvironmentSettings(), trusted=True) as reader:
            clip = probe_clip_file(file, reader)
            assert not isinstance(clip, Failure), clip
            return await review_clip(clip, reviewers, inquiry=inquiry, asker=Asker(reader))

    # A thread of its own: a browser of the test may hold this one's event loop.
    with ThreadPoolExecutor(1) as aside:
        return aside.submit(asyncio.run, go()).result()


def write(
    review: Review,
    out: Path,
    *,
    true_trace: tuple[Trace, ...] = (),
    note: str = "",
    checks: FileOriginCheck = DRAWN,
    on_frames: OnFrames = lambda _n_frames: None,
) -> EvidenceFiles:
    origin = build_file_origin_checks(review.clip.facts, watermarks=checks, provenance=NO_MANIFEST)
    background = EvidencePageContext(origin=origin, made_at=MADE_AT, truth=true_trace, note=note)
    with open_media_reader(EnvironmentSettings(), trusted=True) as reader:
        return write_evidence_files(
            review, out, reader=reader, context=background, on_frames=on_frames
        )
