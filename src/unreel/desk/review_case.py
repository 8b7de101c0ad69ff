"""Review of one case: probes, reviews and presents the clip as `unreel review` does, and stores the answers."""

import asyncio
import base64
import itertools
import json
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from unreel.asking.answer_table import LanceAnswerStore
from unreel.asking.asker import Asker
from unreel.core.failure import Failure, FailureReason
from unreel.core.output_files import OutputDirectory
from unreel.core.settings import read_environment_settings
from unreel.desk.case_store import CaseRecord, CaseStore
from unreel.desk.keyframes import write_keyframes
from unreel.desk.reviewer_sets import OpenReviewerSet
from unreel.engine.location import StorageLocation
from unreel.evaluation.review import Review, probe_clip_file
from unreel.media.reader import MediaReader
from unreel.pages.player import SPEC_ID
from unreel.report.review.evidence_page import (
    EvidencePageContext,
    EvidencePageParts,
    write_evidence_files,
)
from unreel.report.review.file_origin import FileOriginChecks, FileOriginSettings
from unreel.report.review.file_review import review_file
from unreel.report.review.index_page import (
    ReviewIndexPageClip,
    build_failed_index_page_clip,
    build_index_page_clip,
)
from unreel.reviewers.factory import ReviewerWithPrices

_TABLE = "answers.lance"
EVIDENCE = "evidence"
"""Name of the evidence folder in the folder of a case."""
PAGE_PARTS = "page.json"
OnStep = Callable[[str], None]
"""Callback that receives the current step as text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseReviewTools:
    """Open case store and media reader, which the reviews of all cases share."""

    store: CaseStore
    reader: MediaReader


async def review_case(
    case: CaseRecord,
    tools: CaseReviewTools,
    reviewer_set: OpenReviewerSet,
    reviewers: Sequence[ReviewerWithPrices],
    on_step: OnStep,
) -> None:
    """Review the clip of a case, and write its evidence; an unreadable clip makes a failed case."""
    on_step("Reading the file")
    clip = await asyncio.to_thread(probe_clip_file, case.original, tools.reader)
    if isinstance(clip, Failure):
        record_case_failure(case, tools.store, clip)
        return
    n_questions = len(reviewers) * len(reviewer_set.questions.protocols)
    n_answers = itertools.count()

    def report_answer(_opinion: object = None) -> None:
        on_step(f"Asking reviewers: {next(n_answers)} of {n_questions} answers")

    if n_questions:
        report_answer()
    seen_index = read_environment_settings().seen_index
    answers = LanceAnswerStore(StorageLocation(str(case.folder)) / _TABLE)
    with closing(Asker(tools.reader, answers=answers)) as asker:
        review, origin = await review_file(
            clip,
            reviewers,
            reviewer_set.questions,
            reader=tools.reader,
            asker=asker,
            origin_settings=FileOriginSettings(
                seen_index=seen_index if seen_index.is_file() else None
            ),
            on_opinion=report_answer,
        )
    review = replace(review, passport=reviewer_set.passport)
    await asyncio.to_thread(
        _write_case_evidence, case, tools, reviewer_set, review, origin, on_step
    )


def record_case_failure(case: CaseRecord, store: CaseStore, failure: Failure) -> None:
    """Mark a case as failed, with the reason why its clip was not reviewed."""
    fields = {"reason": failure.reason.value, "detail": failure.detail}
    if failure.reason is FailureReason.UNDECODABLE:  # the detail is a message of FFmpeg
        failure = replace(failure, detail="the file is damaged, or it is not a video")
    _record_entry(
        case, store, "failed", build_failed_index_page_clip(case.original, failure), **fields
    )


def _write_case_evidence(
    case: CaseRecord,
    tools: CaseReviewTools,
    reviewer_set: OpenReviewerSet,
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
        context=EvidencePageContext(
            origin=origin,
            made_at=datetime.now(UTC),
            note=reviewer_set.note,
            records=reviewer_set.records,
        ),
        on_page=show_page,
        on_parts=lambda parts: _store_page_parts(parts, folder),
        on_frames=lambda n: on_step(f"Drawing the annotated copy: {n} of {n_frames} frames"),
    )
    tools.store.record(case, "finished", files=tools.store.hash_review_files(case))


def _record_entry(
    case: CaseRecord, store: CaseStore, event: str, clip: ReviewIndexPageClip, **fields: Any
) -> None:
    fields |= {"attention": clip.attention, "sentence": clip.sentence}
    store.record(case, event, claims=list(clip.claims), **fields)


def _store_page_parts(parts: EvidencePageParts, directory: OutputDirectory) -> None:
    """Store the page's parts as JSON and its clip as a file, which browsers read in ranges."""
    data = dict(parts.data)
    spec = data.get(SPEC_ID)
    if spec is not None and spec["src"].startswith("data:"):
        head, _, text = spec["src"].partition(",")
        name = f"clip.{head.removeprefix('data:video/').partition(';')[0]}"
        directory.write(name, base64.b64decode(text))
        data[SPEC_ID] = spec | {"src": name}
    document = {"title": parts.title, "body": str(parts.body), "data": data}
    directory.write(PAGE_PARTS, json.dumps(document).encode())
