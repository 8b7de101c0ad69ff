"""Review of one case: its clip is probed, reviewed and presented as `unreel review` does."""

import asyncio
import base64
import itertools
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from unreel.core.failure import Failure, FailureReason
from unreel.core.output_files import OutputDirectory
from unreel.core.settings import read_environment_settings
from unreel.desk.case_answers import CaseAnswerTable
from unreel.desk.case_store import CaseRecord, CaseStore
from unreel.desk.keyframes import write_keyframes
from unreel.desk.reviewer_sets import OpenReviewerSet
from unreel.evaluation.review import Review, probe_clip_file, review_clip
from unreel.media.reader import MediaReader
from unreel.pages.player import SPEC_ID
from unreel.report.review.evidence_page import (
    EvidencePageContext,
    EvidencePageParts,
    write_evidence_files,
)
from unreel.report.review.file_origin import FileOriginChecks, check_file_origin
from unreel.report.review.index_page import (
    ReviewIndexPageClip,
    build_failed_index_page_clip,
    build_index_page_clip,
)
from unreel.reviewers.ask import ReviewDispatcher
from unreel.reviewers.factory import OpenedReviewer

EVIDENCE: Final = "evidence"
"""Folder of the evidence in that of a case."""
PAGE_PARTS: Final = "page.json"
_FIRST_ASK_S: Final = 0.2
OnStep = Callable[[str], None]
"""Callback that receives the present step as text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseReviewTools:
    """Open case store, media reader and dispatcher, which the reviews of all cases share."""

    store: CaseStore
    reader: MediaReader
    dispatcher: ReviewDispatcher


async def review_case(
    case: CaseRecord,
    tools: CaseReviewTools,
    chosen: OpenReviewerSet,
    reviewers: Sequence[OpenedReviewer],
    on_step: OnStep,
) -> None:
    """Review the clip of a case, and write its evidence; an unreadable clip makes a failed case."""
    on_step("Reading the file")
    clip = await asyncio.to_thread(probe_clip_file, case.original, tools.reader)
    if isinstance(clip, Failure):
        record_case_failure(case, tools.store, clip)
        return
    n_questions = len(reviewers) * len(chosen.questions.protocols)
    n_answers = itertools.count()

    def report_answer(_opinion: object = None) -> None:
        on_step(f"Asking reviewers: {next(n_answers)} of {n_questions} answers")

    answers = CaseAnswerTable(case.folder, asks_again=case.asks_again)
    if n_questions:
        report_answer()
    asked = asyncio.create_task(
        review_clip(
            clip,
            [answers.wrap(opened) for opened in reviewers],
            inquiry=chosen.questions,
            desk=tools.dispatcher,
            on_opinion=report_answer,
        )
    )
    # The questions first: reading the origin starts a process that slows them down.
    await asyncio.wait([asked], timeout=_FIRST_ASK_S)
    origin = await asyncio.to_thread(
        check_file_origin,
        clip,
        reader=tools.reader,
        without_seccomp=bool(read_environment_settings().media_without_seccomp),
        drawn=False,
    )
    review = await asked
    await asyncio.to_thread(_write_case_evidence, case, tools, chosen, review, origin, on_step)


def record_case_failure(case: CaseRecord, store: CaseStore, failure: Failure) -> None:
    """Mark a case as failed, with the reason why its clip was not reviewed."""
    facts = {"reason": failure.reason.value, "detail": failure.detail}
    if failure.reason is FailureReason.UNDECODABLE:  # the detail is a message of FFmpeg
        failure = replace(failure, detail="the file is damaged, or it is not a video")
    _record_entry(
        case, store, "failed", build_failed_index_page_clip(case.original, failure), **facts
    )


def _write_case_evidence(
    case: CaseRecord,
    tools: CaseReviewTools,
    chosen: OpenReviewerSet,
    review: Review,
    origin: FileOriginChecks,
    on_step: OnStep,
) -> None:
    folder = OutputDirectory(case.folder)
    entry = build_index_page_clip(review, origin, folder="", has_pdf=False)
    n_frames = review.clip.facts.video.n_frames
    on_step("Writing the evidence page")

    def show_page(_page: object) -> None:
        _record_entry(case, tools.store, "evidence", entry)
        on_step("Selecting keyframes")
        rows = write_keyframes(case.original, case.folder, reader=tools.reader)
        tools.store.record(case, "keyframes", rows=rows)

    write_evidence_files(
        review,
        folder.make(EVIDENCE),
        reader=tools.reader,
        background=EvidencePageContext(
            origin=origin, made_at=datetime.now(UTC), note=chosen.note, records=chosen.records
        ),
        on_page=show_page,
        on_parts=lambda parts: _store_page_parts(parts, folder),
        on_frames=lambda n: on_step(f"Drawing the annotated copy: {n} of {n_frames} frames"),
    )
    tools.store.record(case, "finished")


def _record_entry(
    case: CaseRecord, store: CaseStore, event: str, entry: ReviewIndexPageClip, **facts: Any
) -> None:
    facts |= {"attention": entry.attention, "sentence": entry.sentence}
    store.record(case, event, claims=list(entry.claims), **facts)


def _store_page_parts(parts: EvidencePageParts, folder: OutputDirectory) -> None:
    """Store the parts of the evidence page as JSON, and its inline clip as a separate file.

    Browsers can read a separate file in ranges.
    """
    data = dict(parts.data)
    spec = data.get(SPEC_ID)
    if spec is not None and spec["src"].startswith("data:"):
        head, _, text = spec["src"].partition(",")
        name = f"clip.{head.removeprefix('data:video/').partition(';')[0]}"
        folder.write(name, base64.b64decode(text))
        data[SPEC_ID] = spec | {"src": name}
    document = {"title": parts.title, "body": str(parts.body), "data": data}
    folder.write(PAGE_PARTS, json.dumps(document).encode())
