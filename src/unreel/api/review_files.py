"""Review of video files with an evidence page for each, and an index page for several."""

import asyncio
import shlex
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from unreel.api.evaluation import ReviewSettings
from unreel.core.errors import (
    InvalidSettingError,
    MachineError,
    SandboxError,
    UnreadableSourceError,
)
from unreel.core.failure import Failure
from unreel.core.output_files import OutputDirectory
from unreel.core.safe_names import make_safe_file_name
from unreel.core.settings import EnvironmentSettings, read_environment_settings
from unreel.media.messages import INCOMPLETE
from unreel.protocols.protocol import REVIEWED

if TYPE_CHECKING:
    from rich.console import RenderableType

    from unreel.asking.asker import Asker
    from unreel.core.clip import Clip
    from unreel.core.trace import Trace
    from unreel.evaluation.opinion import Opinion
    from unreel.evaluation.passport import FalseAlarmPassport
    from unreel.evaluation.review import Review, ReviewQuestions
    from unreel.media.perturb import ClipVariant
    from unreel.media.reader import MediaReader
    from unreel.report.review.file_origin import FileOriginChecks
    from unreel.report.review.index_page import ReviewIndexPageClip
    from unreel.report.review.provenance import C2paTrustList
    from unreel.report.review.review_result import ReviewerAccuracyRecord
    from unreel.reviewers.factory import ReviewerFactory, ReviewerWithPrices

_WRITTEN = ("annotated.mp4", "evidence-clip.mp4", "evidence-clip.webm")
"""Names of the videos that evidence contains."""
_LATE_S = 1.0
"""Seconds after which an answer is reported immediately, while others are pending."""


@dataclass(frozen=True, kw_only=True)
class ReviewCallbacks:
    """Functions that `review_files` calls to show its work."""

    on_note: Callable[[str], None]
    """Called with each message."""
    on_review: "Callable[[Iterable[RenderableType]], None] | None"
    """Called with the parts of each finished review for a terminal, before its page is written."""
    show_activity: Callable[[], AbstractContextManager[Callable[[str], None]]]
    """Opens the display of the current activity; yields the function that shows a text."""
    show_copy: Callable[[int, Path], AbstractContextManager[Callable[[int], None]]]
    """Opens the display of a video copy, for its number of frames and the written page; yields the function that shows the number of finished frames."""


@dataclass(frozen=True, kw_only=True)
class FileReviews:
    """Result of `review_files`."""

    rows: Sequence[Mapping[str, object]]
    """One row for `--json` for each file, in order."""
    note: str
    """Note for all results, for example that the answers are recorded."""
    closing_notes: tuple[str, ...]
    """What the results can and cannot prove."""
    n_skipped_links: int
    is_complete: bool
    """Whether every file was read, and every question has a readable answer."""


def review_files(settings: ReviewSettings, callbacks: ReviewCallbacks) -> FileReviews:
    """Review the files in `settings.clips`, and all videos in its folders.

    A file that cannot be read is a row with its failure. Nothing is stored except in `settings.out`.

    Raises:
        InvalidSettingError: Two settings contradict each other, or a file would be overwritten.
        UnreadableSourceError: A folder contains no video.
    """
    from unreel.media.access import open_media_reader

    if "local" in settings.models:
        from unreel.reviewers.endpoint.servers import require_local_model

        local = require_local_model()
        models = tuple(local if model == "local" else model for model in settings.models)
        settings = replace(settings, models=models)
    _require_valid_settings(settings)
    browser = _require_pdf_browser(settings.out, callbacks.on_note) if settings.pdf else ""
    files, n_skipped_links = _list_videos(settings)
    has_index = len(files) > 1 or any(path.is_dir() for path in settings.clips)
    environment = read_environment_settings()
    reading = open_media_reader(environment, trusted=settings.trusted, at_once=("probe", "frames"))
    with reading as reader, _draw_sample_clip(settings) as sample_files:
        session = _ReviewSession(
            settings,
            environment=environment,
            reader=reader,
            browser=browser,
            callbacks=callbacks,
            n_skipped_links=n_skipped_links,
        )
        rows = asyncio.run(session.review_all(sample_files or files, has_index=has_index))
    return FileReviews(
        rows=rows,
        note=session.note,
        closing_notes=session.closing_notes,
        n_skipped_links=n_skipped_links,
        is_complete=session.is_complete,
    )


def format_download_advice(address: str) -> str:
    """Return how to download the clip at the URL `address`, which no command opens."""
    from unreel.benchmarks.folder_layout import VIDEO_SUFFIXES

    scheme, _, path, _, _ = urlsplit(address)
    name, source = make_safe_file_name(PurePosixPath(path).name).lstrip("-"), shlex.quote(address)
    if not name.lower().endswith(VIDEO_SUFFIXES):
        return (
            "Download it first: save the video that the page shows as a file, then name that file"
        )
    fetch = "aws s3 cp {source} {file}" if scheme == "s3" else "curl -L -o {file} {source}"
    return f"Download it first: {fetch.format(source=source, file=name)}, then name {name}"


def _require_valid_settings(settings: ReviewSettings) -> None:
    if settings.sample and (settings.clips or settings.models):
        raise InvalidSettingError(
            "--sample",
            "brings its own clip and answers",
            "Leave out the clips and --model, or leave out --sample",
        )
    if settings.sample and settings.perturb:
        raise InvalidSettingError(
            "--perturb",
            "the sample's answers are recorded only for its own clip",
            "Leave it out, or name a clip and --model",
        )
    if not settings.sample and not settings.clips:
        raise InvalidSettingError(
            "CLIPS", "missing", "Name a video file, or try `unreel review --sample`"
        )
    if settings.perturb and not settings.models:
        raise InvalidSettingError("--perturb", "no model is named to ask again", "Add --model")


def _require_pdf_browser(out: Path | None, on_note: Callable[[str], None]) -> str:
    """Return the browser for `--pdf`, before any question; raise if none is installed or `--out` is missing."""
    from unreel.report.review.browser_pdf import find_chromium_browser, lacks_browser_sandbox

    option = "--pdf"
    if out is None:
        raise InvalidSettingError(option, "needs a folder", "Name one with --out FOLDER")
    browser = find_chromium_browser()
    if browser is None:
        raise InvalidSettingError(
            option,
            "no Chromium, Chrome or Edge is installed here",
            "Install one, or leave out --pdf and print evidence.html from any browser",
        )
    if lacks_browser_sandbox():
        on_note("--pdf: Chromium shows the clip without its sandbox, because you are root")
    return browser


def _list_videos(settings: ReviewSettings) -> tuple[tuple[Path, ...], int]:
    """Return the named files and all videos in the named folders, and the number of skipped symbolic links.

    Videos in the output folder are excluded, because an earlier review wrote them.
    """
    from unreel.benchmarks.entry import Rejected
    from unreel.benchmarks.folder_layout import walk_videos

    out = settings.out
    written = None if out is None else out.resolve()
    files: dict[Path, None] = {}
    n_links = 0
    for path in settings.clips:
        if not path.is_dir():
            files[path] = None
            continue
        rows = list(walk_videos(path))
        n_links += sum(isinstance(row, Rejected) for row in rows)
        videos = [path / row for row in rows if isinstance(row, str)]
        inputs = [v for v in videos if written is None or written not in v.resolve().parents]
        if not inputs:
            raise UnreadableSourceError(
                str(path),
                f"no video is in this folder, and {len(rows)} symbolic links are not followed",
                "Name a folder with video files, or the files themselves",
            )
        files.update(dict.fromkeys(inputs))
    outputs = {} if out is None else {(out / name).resolve(): name for name in _WRITTEN}
    for file in files:
        if name := outputs.get(file.resolve()):
            raise InvalidSettingError(
                "--out",
                f"a clip in it would be overwritten by the output {name}",
                "Name another folder",
            )
    return tuple(files), n_links


@contextmanager
def _draw_sample_clip(settings: ReviewSettings) -> Iterator[tuple[Path, ...]]:
    """Yield the synthesised clip of `--sample` in a temporary folder; nothing without `--sample`."""
    if not settings.sample:
        yield ()
        return
    from unreel.evaluation.sample_review import write_sample_clip

    with tempfile.TemporaryDirectory(prefix="unreel-") as folder:
        yield (write_sample_clip(Path(folder)),)


class _ReviewSession:
    """One call of `review_files`: reads clips, sends them to reviewers, and writes their pages."""

    def __init__(
        self,
        settings: ReviewSettings,
        *,
        environment: EnvironmentSettings,
        reader: "MediaReader",
        browser: str,
        callbacks: ReviewCallbacks,
        n_skipped_links: int,
    ) -> None:
        self._settings, self._environment, self._reader = settings, environment, reader
        self._out, self._browser, self._callbacks = settings.out, browser, callbacks
        self._n_skipped_links = n_skipped_links
        self.is_complete = True
        self.note = ""
        self.closing_notes: tuple[str, ...] = ()
        self._records: tuple[ReviewerAccuracyRecord, ...] = ()
        self._passport: FalseAlarmPassport | None = None
        index = environment.seen_index
        self._seen_index = index if index.is_file() and not settings.sample else None
        self._trust_list: C2paTrustList | None = None
        self._index_clips: list[ReviewIndexPageClip] = []

    async def review_all(
        self, files: Sequence[Path], *, has_index: bool
    ) -> list[dict[str, object]]:
        """Review all files, and return one row for each file, in order."""
        from unreel.asking.asker import Asker
        from unreel.evaluation.opinion import format_perturbed_question_count
        from unreel.evaluation.review import probe_clip_file
        from unreel.report.review.opinion_text import FILE_ONLY, NO_PROOF, PARSERS
        from unreel.reviewers.factory import ReviewerPool

        # The process that opens files starts while this one loads the rest.
        loop = asyncio.get_running_loop()
        probes = [loop.run_in_executor(None, probe_clip_file, file, self._reader) for file in files]
        questions, factories = self._prepare_questions()
        if self._out is not None:  # refused before any question is sent
            OutputDirectory(self._out, published=True).make()
        if self._settings.runs:
            from unreel.evaluation.run_lookup import open_named_run
            from unreel.report.review.review_result import read_reviewer_records

            runs = [open_named_run(run, self._environment) for run in self._settings.runs]
            parser = self._settings.parser
            self._records = tuple(
                record for run in runs for record in read_reviewer_records(run, parser)
            )
        if self._settings.trust_anchors is not None:
            from unreel.report.review.provenance import read_trust_list

            self._trust_list = read_trust_list(self._settings.trust_anchors)
        if self._settings.passport is not None:
            from unreel.evaluation.passport import read_passport

            self._passport = read_passport(self._settings.passport)
        if self.note:
            self._callbacks.on_note(self.note)
        if self._settings.perturb:
            n_questions = len(files) * len(questions.protocols) * len(factories)
            self._callbacks.on_note(format_perturbed_question_count(n_questions))
        rows: list[dict[str, object]] = []
        try:
            async with ReviewerPool() as pool:
                reviewers = [pool.open(factory) for factory in factories]
                with closing(Asker(self._reader)) as asker:
                    ask = partial(
                        self._ask_about, reviewers=reviewers, questions=questions, asker=asker
                    )
                    for i, (file, probe) in enumerate(zip(files, probes, strict=True), start=1):
                        name = f"{i:03d}-{make_safe_file_name(file.stem)}" if has_index else ""
                        rows.append(await self._review_one(file, probe, ask=ask, name=name))
        finally:
            if self._index_clips:
                self._write_index(n_left=len(files) - len(self._index_clips))
        self.closing_notes = (PARSERS[questions.mode], NO_PROOF) if factories else (FILE_ONLY,)
        return rows

    def _prepare_questions(self) -> "tuple[ReviewQuestions, tuple[ReviewerFactory, ...]]":
        from unreel.api.contacts import describe_model_servers, require_reachable_model
        from unreel.evaluation.review import (
            build_review_questions,
            build_reviewer_factories,
            format_box_space_note,
            get_trained_protocols,
        )

        settings = self._settings
        questions = build_review_questions(
            settings.protocols or get_trained_protocols(settings.models) or REVIEWED,
            settings.conditions,
            mode=settings.parser,
            models=settings.models,
            n_scan=settings.n_scan,
        )
        if settings.sample:
            from unreel.evaluation.sample_review import NOTE, build_sample_reviewers

            self.note = NOTE
            return questions, build_sample_reviewers()
        for line in describe_model_servers(settings.models, self._environment):
            self._callbacks.on_note(line)
        require_reachable_model(settings.models, self._environment)
        factories = build_reviewer_factories(
            settings.models,
            questions,
            settings=self._environment,
            recorded=settings.recorded,
            prices=settings.prices,
            deadline_s=settings.deadline_s,
            show=settings.show,
            box_space=settings.box_space,
        )
        recorded = [factory.name for factory in factories if factory.name.startswith("recorded:")]
        notes = [format_box_space_note(settings.models, questions, box_space=settings.box_space)]
        if recorded:
            notes.append(
                f"The answers of {', '.join(recorded)} are recorded: no model was queried."
            )
        self.note = " ".join(filter(None, notes))
        return questions, factories

    async def _review_one(
        self,
        file: Path,
        probe: "Awaitable[Clip | Failure]",
        *,
        ask: "Callable[[Clip, Callable[[str], None]], Awaitable[tuple[Review, FileOriginChecks]]]",
        name: str,
    ) -> dict[str, object]:
        """Review one file and return its JSON row, also for a failure, which does not stop the review."""
        from unreel.engine.stage import convert_error_to_failure

        try:
            clip = await probe
            if not isinstance(clip, Failure):
                with self._callbacks.show_activity() as show:
                    review, origin = await ask(clip, show)
                return self._report(replace(review, passport=self._passport), origin, name)
        except (MachineError, SandboxError):
            raise
        except Exception as error:  # noqa: BLE001  a failed clip is a row, whatever it raised
            clip = convert_error_to_failure(error)
        self.is_complete = False
        self._callbacks.on_note(f"{file}: {clip}")
        if name:
            from unreel.report.review.index_page import build_failed_index_page_clip

            self._index_clips.append(build_failed_index_page_clip(file, clip))
        attention = "incomplete" if INCOMPLETE in clip.detail else "failure"
        return {"file": str(file), "attention": attention, "failure": clip}

    async def _ask_about(
        self,
        clip: "Clip",
        show: Callable[[str], None],
        *,
        reviewers: "Sequence[ReviewerWithPrices]",
        questions: "ReviewQuestions",
        asker: "Asker",
    ) -> "tuple[Review, FileOriginChecks]":
        from unreel.evaluation.long_clip_review import (
            WindowSearchOpinion,
            format_window_search_cost,
            format_window_search_plan,
            needs_window_search,
            select_frame_reviewers,
        )
        from unreel.report.review.file_origin import FileOriginSettings
        from unreel.report.review.file_review import review_file

        on_note = self._callbacks.on_note
        scanners = select_frame_reviewers(reviewers)
        if questions.scan is not None and scanners and needs_window_search(clip, questions.scan):
            on_note(format_window_search_plan(clip, len(scanners), questions.scan))
        start_s = time.monotonic()
        pending = dict.fromkeys(
            (opened.reviewer.name, name) for name in questions.protocols for opened in reviewers
        )

        def show_pending() -> None:
            names = ", ".join(dict.fromkeys(reviewer for reviewer, _ in pending))
            waiting = f"waiting for {names}" if names else "searching the file"
            show(f"{Path(clip.location).name}: {waiting}")

        def on_opinion(opinion: "Opinion") -> None:
            protocol = opinion.question.instrument.protocol
            pending.pop((opinion.reviewer, protocol), None)
            show_pending()
            if isinstance(opinion, WindowSearchOpinion):
                on_note(format_window_search_cost(opinion))
            if time.monotonic() - start_s > _LATE_S:
                on_note(f"{opinion.reviewer}, {protocol}: {opinion.headline}")

        def on_variant(variant: "ClipVariant") -> None:
            on_note(f"asks again, {variant.name}: {variant}")
            show(f"waiting for answers about the {variant.name} clip")

        show_pending()
        return await review_file(
            clip,
            reviewers,
            questions,
            reader=self._reader,
            asker=asker,
            origin_settings=FileOriginSettings(
                drawn=self._settings.sample,
                seen_index=self._seen_index,
                trust_list=self._trust_list,
            ),
            perturb=self._settings.perturb,
            on_opinion=on_opinion,
            on_variant=on_variant,
        )

    def _report(self, review: "Review", origin: "FileOriginChecks", name: str) -> dict[str, object]:
        from unreel.report.review.review_result import build_review_json

        self.is_complete &= review.is_complete
        if self._callbacks.on_review is not None:
            from unreel.report.review.terminal import render_review_for_terminal

            parts = render_review_for_terminal(review, origin, self._records)
            self._callbacks.on_review(parts)
        row = build_review_json(review, origin, records=self._records)
        written: dict[str, object] = {}
        if self._out is not None:
            folder = OutputDirectory(self._out, published=True).make(name) if name else self._out
            row["evidence"] = written = self._write_evidence(review, folder, origin)
        if name:
            from unreel.report.review.index_page import build_index_page_clip

            folder_name, has_pdf = name if written else "", bool(written.get("pdf"))
            self._index_clips.append(
                build_index_page_clip(review, origin, folder=folder_name, has_pdf=has_pdf)
            )
        return row

    def _write_evidence(
        self, review: "Review", folder: Path, origin: "FileOriginChecks"
    ) -> dict[str, object]:
        from unreel.report.review.evidence_page import (
            PAGE,
            EvidencePageContext,
            write_evidence_files,
        )

        truth: tuple[Trace, ...] = ()
        if self._settings.sample:
            from unreel.evaluation.sample_review import read_sample_traces

            truth = read_sample_traces()
        on_note = self._callbacks.on_note
        n_frames = review.clip.facts.video.n_frames
        with self._callbacks.show_copy(n_frames, folder / PAGE) as on_frames:
            evidence = write_evidence_files(
                review,
                folder,
                reader=self._reader,
                context=EvidencePageContext(
                    origin=origin,
                    made_at=datetime.now(UTC),
                    truth=truth,
                    note=self.note,
                    records=self._records,
                ),
                on_page=lambda page: on_note(f"evidence in {page}"),
                on_frames=on_frames,
            )
        annotated = evidence.annotated
        if isinstance(annotated, Failure):
            on_note(f"no annotated copy: {annotated}")
        pdf: dict[str, object] = {}
        if self._browser:
            from unreel.report.review.browser_pdf import PDF, print_page_as_pdf

            on_note(f"prints {folder / PDF}")
            problem = print_page_as_pdf(evidence.page, browser=self._browser)
            pdf = {"pdf": None if problem else str(folder / PDF)}
            if problem:
                self.is_complete = False
                page = evidence.page
                on_note(f"no PDF: {problem}. Open {page} in a browser and print it there")
        return {
            "page": str(evidence.page),
            **pdf,
            "result": str(evidence.result),
            "annotated": str(annotated) if isinstance(annotated, Path) else annotated,
            **evidence.stills.to_json(),
        }

    def _write_index(self, *, n_left: int) -> None:
        from unreel.report.review.index_page import (
            ReviewIndexPageNotes,
            format_attention_count,
            write_review_index_page,
        )

        on_note = self._callbacks.on_note
        if self._n_skipped_links:
            on_note(f"symbolic links that were skipped: {self._n_skipped_links}")
        on_note(format_attention_count(self._index_clips))
        if self._out is not None:
            notes = ReviewIndexPageNotes(
                made_at=datetime.now(UTC),
                n_skipped_links=self._n_skipped_links,
                n_left=n_left,
                note=self.note,
            )
            page = write_review_index_page(self._index_clips, self._out, notes)
            on_note(f"index in {page}")
