"""Review of one case: its clip is probed, reviewed and presented as `unreel review` does; its answers are stored."""

import asyncio
import base64
import itertools
import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from unreel.core.answer import Reply, Usage
from unreel.core.failure import Failure, FailureReason
from unreel.core.output_files import OutputDirectory
from unreel.core.settings import read_environment_settings
from unreel.desk.case_store import CaseRecord, CaseStore
from unreel.desk.keyframes import write_keyframes
from unreel.desk.reviewer_sets import OpenReviewerSet
from unreel.engine.location import StorageLocation
from unreel.engine.table import LanceTable
from unreel.engine.table_writer import TableWriter
from unreel.engine.writer_lock import build_writer_lock
from unreel.evaluation.review import Review, probe_clip_file, review_clip
from unreel.evaluation.run_cost import ESTIMATED, build_cost_columns
from unreel.evaluation.table_schemas import ANSWERS
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
from unreel.reviewers.contract import Reviewer, ReviewRequest
from unreel.reviewers.factory import ReviewerWithPrices

_TABLE: Final = "answers.lance"
_COPIED: Final = ("text", "latency_us", "answered_by")


class CaseAnswerTable:
    """Table of the reviewers' answers about the case in `folder`; failures are not stored."""

    def __init__(self, folder: Path) -> None:
        self._table = LanceTable(StorageLocation(str(folder)) / _TABLE, ANSWERS)
        self._lock = threading.Lock()

    def read(self, key: str) -> Reply | None:
        """Return the stored answer to a question; `None` if the question must be asked."""
        with self._lock:
            rows = self._table.get([key])
        if not rows or rows[0]["text"] is None:
            return None
        row = rows[0]
        tokens: dict[str, Any] = {name: row[name] for name in ("input_tokens", "output_tokens")}
        usage = None
        if None not in tokens.values():
            usage = Usage(**tokens, is_estimated=bool(row[ESTIMATED]))
        return Reply(**{name: row[name] for name in _COPIED}, usage=usage)

    def commit(self, sheet: ReviewRequest, reviewer: str, reply: Reply) -> None:
        """Store the answer to a question."""
        row = {
            "key": sheet.key,
            "reviewer": reviewer,
            "clip": sheet.exhibits[0].clip.id,
            "protocol": sheet.instrument.protocol,
            "protocol_version": sheet.instrument.version,
            "condition": str(sheet.condition),
            "reply_digest": reply.digest,
            **{name: getattr(reply, name) for name in _COPIED},
            **build_cost_columns(reply.usage, None, None),
        }
        with self._lock, build_writer_lock(self._table.place) as lock:
            writer = TableWriter(self._table, lock=lock, observe=lambda _event, _n: None)
            writer.replace([ANSWERS.batch([row])])


class _AnswerStoringReviewer:
    """Reviewer that asks only questions without a stored answer, and stores each new answer."""

    def __init__(self, reviewer: Reviewer, answers: CaseAnswerTable) -> None:
        self._reviewer, self._answers = reviewer, answers
        self.name, self.wants = reviewer.name, reviewer.wants
        self.box_space, self.close = reviewer.box_space, reviewer.close

    async def answer(self, sheet: ReviewRequest) -> Reply | Failure:
        stored = await asyncio.to_thread(self._answers.read, sheet.key)
        if stored is not None:
            return stored
        outcome = await self._reviewer.answer(sheet)
        if isinstance(outcome, Reply):
            await asyncio.to_thread(self._answers.commit, sheet, self.name, outcome)
        return outcome


EVIDENCE: Final = "evidence"
"""Name of the evidence folder in the folder of a case."""
PAGE_PARTS: Final = "page.json"
_FIRST_ASK_S: Final = 0.2
OnStep = Callable[[str], None]
"""Callback that receives the current step as text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseReviewTools:
    """Open case store, media reader and dispatcher, which the reviews of all cases share."""

    store: CaseStore
    reader: MediaReader
    dispatcher: ReviewDispatcher


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

    answers = CaseAnswerTable(case.folder)
    storing = [
        ReviewerWithPrices(_AnswerStoringReviewer(each.reviewer, answers), each.price)
        for each in reviewers
    ]
    if n_questions:
        report_answer()
    review_task = asyncio.create_task(
        review_clip(
            clip,
            storing,
            inquiry=reviewer_set.questions,
            desk=tools.dispatcher,
            on_opinion=report_answer,
        )
    )
    # Send the questions first: reading the origin starts a process that slows them down.
    await asyncio.wait([review_task], timeout=_FIRST_ASK_S)
    origin = await asyncio.to_thread(
        check_file_origin,
        clip,
        reader=tools.reader,
        without_seccomp=bool(read_environment_settings().media_without_seccomp),
        drawn=False,
    )
    review = await review_task
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
        background=EvidencePageContext(
            origin=origin,
            made_at=datetime.now(UTC),
            note=reviewer_set.note,
            records=reviewer_set.records,
        ),
        on_page=show_page,
        on_parts=lambda parts: _store_page_parts(parts, folder),
        on_frames=lambda n: on_step(f"Drawing the annotated copy: {n} of {n_frames} frames"),
    )
    tools.store.record(case, "finished")


def _record_entry(
    case: CaseRecord, store: CaseStore, event: str, entry: ReviewIndexPageClip, **fields: Any
) -> None:
    fields |= {"attention": entry.attention, "sentence": entry.sentence}
    store.record(case, event, claims=list(entry.claims), **fields)


def _store_page_parts(parts: EvidencePageParts, folder: OutputDirectory) -> None:
    """Store the page's parts as JSON and its clip as a file, which browsers read in ranges."""
    data = dict(parts.data)
    spec = data.get(SPEC_ID)
    if spec is not None and spec["src"].startswith("data:"):
        head, _, text = spec["src"].partition(",")
        name = f"clip.{head.removeprefix('data:video/').partition(';')[0]}"
        folder.write(name, base64.b64decode(text))
        data[SPEC_ID] = spec | {"src": name}
    document = {"title": parts.title, "body": str(parts.body), "data": data}
    folder.write(PAGE_PARTS, json.dumps(document).encode())
