"""`unreel review`: review clips with models, and write evidence pages."""

import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from unreel.api.evaluation import ReviewSettings
from unreel.cli.clip_arguments import ClipBatch, collect_clip_batch
from unreel.cli.options import settings_options
from unreel.cli.output import json_option, print_json, print_message
from unreel.cli.process_signals import StopSignalReceived
from unreel.core.errors import InvalidSettingError, MachineError, SandboxError
from unreel.core.failure import Failure
from unreel.core.output_files import OutputDirectory
from unreel.core.safe_names import make_safe_file_name
from unreel.core.settings import EnvironmentSettings, read_environment_settings
from unreel.media.messages import INCOMPLETE
from unreel.protocols.protocol import REVIEWED

if TYPE_CHECKING:
    from unreel.asking.asker import Asker
    from unreel.cli.progress import ProgressMeter
    from unreel.core.clip import Clip
    from unreel.core.trace import Trace
    from unreel.evaluation.opinion import Opinion
    from unreel.evaluation.review import Review, ReviewQuestions
    from unreel.media.perturb import ClipVariant
    from unreel.media.reader import MediaReader
    from unreel.protocols.protocol import Mode
    from unreel.report.review.file_origin import FileOriginChecks
    from unreel.report.review.index_page import ReviewIndexPageClip
    from unreel.report.review.review_result import ReviewerAccuracyRecord
    from unreel.reviewers.factory import ReviewerFactory, ReviewerWithPrices

_WRITTEN = ("annotated.mp4", "evidence-clip.mp4", "evidence-clip.webm")
"""Names of the videos that evidence contains."""
_LATE_S = 1.0
"""Seconds after which an answer is reported immediately, while others are pending."""
_PIPE_WIDTH = 110


class ReviewCommandSession:
    """Session of `unreel review`: reads clips, sends them to reviewers, and prints each result."""

    def __init__(
        self,
        settings: ReviewSettings,
        *,
        environment: EnvironmentSettings,
        reader: "MediaReader",
        browser: str,
        quiet: bool,
    ) -> None:
        self._settings, self._environment, self._reader = settings, environment, reader
        self._out, self._browser, self._quiet = settings.out, browser, quiet
        self.is_complete = True
        self.note = ""
        self._records: tuple[ReviewerAccuracyRecord, ...] = ()
        self._entries: list[ReviewIndexPageClip] = []
        self._meter: ProgressMeter | None = None
        self._waited: dict[tuple[str, str], None] = {}

    async def review_all(self, batch: ClipBatch) -> list[dict[str, object]]:
        """Review all files of `batch`, and return one row for each file, in order."""
        from unreel.evaluation.review import probe_clip_file

        files = batch.files
        # The process that opens files starts while this one loads the rest.
        loop = asyncio.get_running_loop()
        surveys = [
            loop.run_in_executor(None, probe_clip_file, file, self._reader) for file in files
        ]
        inquiry, factories = self._describe()
        if self._out is not None:  # refused before any question is sent
            OutputDirectory(self._out, published=True).make()
        self._records = _read_reviewer_records(
            self._settings.runs, self._environment, self._settings.parser
        )
        from unreel.asking.asker import Asker
        from unreel.evaluation.opinion import format_perturbed_question_count
        from unreel.reviewers.factory import ReviewerPool

        if self.note:
            print_message(self.note)
        if self._settings.perturb:
            n_questions = len(files) * len(inquiry.protocols) * len(factories)
            print_message(format_perturbed_question_count(n_questions))
        rows: list[dict[str, object]] = []
        try:
            async with ReviewerPool() as pool:
                reviewers = [pool.open(factory) for factory in factories]
                with closing(Asker(self._reader)) as asker:
                    ask = partial(
                        self._ask_about, reviewers=reviewers, questions=inquiry, asker=asker
                    )
                    pairs = zip(files, surveys, strict=True)
                    for i, (file, survey) in enumerate(pairs, start=1):
                        stem = make_safe_file_name(file.stem)
                        name = f"{i:03d}-{stem}" if batch.has_index else ""
                        rows.append(await self._row_of(file, survey, ask=ask, name=name))
        finally:
            if self._entries:
                from unreel.report.review.index_page import (
                    ReviewIndexPageNotes,
                    format_attention_count,
                    write_review_index_page,
                )

                if batch.n_skipped_links:
                    print_message(f"symbolic links that were skipped: {batch.n_skipped_links}")
                print_message(format_attention_count(self._entries))
                if self._out is not None:
                    notes = ReviewIndexPageNotes(
                        made_at=datetime.now(UTC),
                        n_skipped_links=batch.n_skipped_links,
                        n_left=len(batch.files) - len(self._entries),
                        note=self.note,
                    )
                    print_message(
                        f"index in {write_review_index_page(self._entries, self._out, notes)}"
                    )
        if not self._quiet:
            from unreel.report.review.opinion_text import FILE_ONLY, NO_PROOF, PARSERS

            print_message(*([PARSERS[inquiry.mode], NO_PROOF] if factories else [FILE_ONLY]))
        return rows

    async def _row_of(
        self,
        file: Path,
        survey: "Awaitable[Clip | Failure]",
        *,
        ask: "Callable[[Clip], Awaitable[tuple[Review, FileOriginChecks]]]",
        name: str,
    ) -> dict[str, object]:
        """Review one file and return its JSON row, also for a failure, which does not stop the review."""
        from unreel.engine.stage import convert_error_to_failure

        try:
            clip = await survey
            if not isinstance(clip, Failure):
                from unreel.cli.progress import ProgressMeter

                with ProgressMeter() as self._meter:
                    review, origin = await ask(clip)
                return self._report(review, origin, name)
        except (MachineError, SandboxError):
            raise
        except Exception as error:  # noqa: BLE001  a failed clip is a row, whatever it raised
            clip = convert_error_to_failure(error)
        self.is_complete = False
        print_message(f"{file}: {clip}")
        if name:
            from unreel.report.review.index_page import build_failed_index_page_clip

            self._entries.append(build_failed_index_page_clip(file, clip))
        attention = "incomplete" if INCOMPLETE in clip.detail else "failure"
        return {"file": str(file), "attention": attention, "failure": clip}

    def _tell_waiting(self, file: Path) -> None:
        if self._meter is not None:
            names = ", ".join(dict.fromkeys(reviewer for reviewer, _ in self._waited))
            waiting = f"waiting for {names}" if names else "searching the file"
            self._meter.tell(f"{file.name}: {waiting}")

    def _describe(self) -> "tuple[ReviewQuestions, tuple[ReviewerFactory, ...]]":
        from unreel.api.contacts import describe_model_servers, require_reachable_model
        from unreel.evaluation.review import (
            build_review_questions,
            build_reviewer_factories,
            format_box_space_note,
            get_trained_protocols,
        )

        settings = self._settings
        protocols = settings.protocols or get_trained_protocols(settings.models) or REVIEWED
        inquiry = build_review_questions(
            protocols,
            settings.conditions,
            mode=settings.parser,
            models=settings.models,
            n_scan=settings.n_scan,
        )
        if settings.sample:
            from unreel.evaluation.sample_review import NOTE, build_sample_reviewers

            self.note = NOTE
            return inquiry, build_sample_reviewers()
        print_message(*describe_model_servers(settings.models, self._environment))
        require_reachable_model(settings.models, self._environment)
        factories = build_reviewer_factories(
            settings.models,
            inquiry,
            settings=self._environment,
            recorded=settings.recorded,
            prices=settings.prices,
            deadline_s=settings.deadline_s,
            show=settings.show,
            box_space=settings.box_space,
        )
        recorded = [factory.name for factory in factories if factory.name.startswith("recorded:")]
        notes = [format_box_space_note(settings.models, inquiry, box_space=settings.box_space)]
        if recorded:
            notes.append(
                f"The answers of {', '.join(recorded)} are recorded: no model was queried."
            )
        self.note = " ".join(filter(None, notes))
        return inquiry, factories

    async def _ask_about(
        self,
        clip: "Clip",
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
        from unreel.report.review.file_review import review_file

        scanners = select_frame_reviewers(reviewers)
        if questions.scan is not None and scanners and needs_window_search(clip, questions.scan):
            print_message(format_window_search_plan(clip, len(scanners), questions.scan))
        asked_s = time.monotonic()

        self._waited = dict.fromkeys(
            (opened.reviewer.name, name) for name in questions.protocols for opened in reviewers
        )

        def tell(opinion: "Opinion") -> None:
            self._waited.pop((opinion.reviewer, opinion.question.instrument.protocol), None)
            self._tell_waiting(Path(clip.location))
            if isinstance(opinion, WindowSearchOpinion):
                print_message(format_window_search_cost(opinion))
            if time.monotonic() - asked_s > _LATE_S:
                protocol = opinion.question.instrument.protocol
                print_message(f"{opinion.reviewer}, {protocol}: {opinion.headline}")

        def tell_variant(variant: "ClipVariant") -> None:
            print_message(f"asks again, {variant.name}: {variant}")
            if self._meter is not None:
                self._meter.tell(f"waiting for answers about the {variant.name} clip")

        self._tell_waiting(Path(clip.location))
        return await review_file(
            clip,
            reviewers,
            questions,
            reader=self._reader,
            asker=asker,
            drawn=self._settings.sample,
            perturb=self._settings.perturb,
            on_opinion=tell,
            on_variant=tell_variant,
        )

    def _report(self, review: "Review", origin: "FileOriginChecks", name: str) -> dict[str, object]:
        from unreel.report.review.review_result import build_review_json

        self.is_complete &= review.is_complete
        if not self._quiet:
            self._show(review, origin)
        row = build_review_json(review, origin, records=self._records)
        written: dict[str, object] = {}
        if self._out is not None:
            folder = OutputDirectory(self._out, published=True).make(name) if name else self._out
            row["evidence"] = written = self._write(review, folder, origin)
        if name:
            from unreel.report.review.index_page import build_index_page_clip

            folder_name, has_pdf = name if written else "", bool(written.get("pdf"))
            self._entries.append(
                build_index_page_clip(review, origin, folder=folder_name, has_pdf=has_pdf)
            )
        return row

    def _show(self, review: "Review", origin: "FileOriginChecks") -> None:
        from unreel.cli.console import open_console
        from unreel.report.review.terminal import render_review_for_terminal

        console = open_console(pipe_width=_PIPE_WIDTH)
        for block in render_review_for_terminal(review, origin, self._records):
            console.print(block)

    def _write(
        self, review: "Review", folder: Path, origin: "FileOriginChecks"
    ) -> dict[str, object]:
        from unreel.cli.progress import show_video_copy_progress
        from unreel.report.review.evidence_page import (
            PAGE,
            EvidencePageContext,
            write_evidence_files,
        )

        truth: tuple[Trace, ...] = ()
        if self._settings.sample:
            from unreel.evaluation.sample_review import read_sample_traces

            truth = read_sample_traces()
        background = EvidencePageContext(
            origin=origin,
            made_at=datetime.now(UTC),
            truth=truth,
            note=self.note,
            records=self._records,
        )
        try:
            with show_video_copy_progress(review.clip.facts.video.n_frames) as on_frames:
                evidence = write_evidence_files(
                    review,
                    folder,
                    reader=self._reader,
                    context=background,
                    on_page=lambda page: print_message(f"evidence in {page}"),
                    on_frames=on_frames,
                )
        except StopSignalReceived as stopped:
            stopped.add_note(
                f"the answers so far are in {folder / PAGE}, without an annotated copy"
            )
            raise
        if isinstance(evidence.annotated, Failure):
            print_message(f"no annotated copy: {evidence.annotated}")
        return {
            "page": str(evidence.page),
            **self._print(evidence.page),
            "result": str(evidence.result),
            "annotated": (
                str(evidence.annotated)
                if isinstance(evidence.annotated, Path)
                else evidence.annotated
            ),
            **evidence.stills.to_json(),
        }

    def _print(self, page: Path) -> dict[str, object]:
        if not self._browser:
            return {}
        from unreel.report.review.browser_pdf import PDF, print_page_as_pdf

        print_message(f"prints {page.parent / PDF}")
        if problem := print_page_as_pdf(page, browser=self._browser):
            self.is_complete = False
            print_message(f"no PDF: {problem}. Open {page} in a browser and print it there")
            return {"pdf": None}
        return {"pdf": str(page.parent / PDF)}


def _read_reviewer_records(
    runs: Sequence[str], settings: EnvironmentSettings, mode: "Mode"
) -> "tuple[ReviewerAccuracyRecord, ...]":
    if not runs:
        return ()
    from unreel.evaluation.run_lookup import open_named_run
    from unreel.report.review.review_result import read_reviewer_records

    opened = [open_named_run(run, settings) for run in runs]
    return tuple(record for run in opened for record in read_reviewer_records(run, mode))


@click.command()
@settings_options(ReviewSettings)
@json_option
def review(settings: ReviewSettings, *, as_json: bool) -> None:
    """Examine CLIPS, and ask AI models about them: real or generated, where, when and why.

    Without --model, only the files are examined: tags, Content Credentials, and words and logos over the
    picture. Then model servers that run on this computer are looked for, and the command to ask them is printed.

    CLIPS are video files, or folders whose videos are all reviewed. With --out and several clips, an
    index.html lists them, those that need attention first.

    Stores nothing except with --out. Exits with status 1 if a clip cannot be read, a model does not
    answer, or an answer is unreadable.
    """
    if "local" in settings.models:
        from unreel.reviewers.endpoint.servers import require_local_model

        local = require_local_model()
        models = tuple(local if model == "local" else model for model in settings.models)
        settings = replace(settings, models=models)
    _require_valid_options(settings)
    out = settings.out
    browser = _require_pdf_browser(out) if settings.pdf else ""
    batch = collect_clip_batch(settings.clips, out=out)
    outputs = {(out / name).resolve(): name for name in _WRITTEN} if out is not None else {}
    for clip in batch.files:
        if name := outputs.get(clip.resolve()):
            raise InvalidSettingError(
                "--out",
                f"a clip in it would be overwritten by the output {name}",
                "Name another folder",
            )
    from unreel.media.access import open_media_reader

    environment = read_environment_settings()
    reading = open_media_reader(environment, trusted=settings.trusted, at_once=("probe", "frames"))
    with reading as reader, _open_clip_batch(batch, settings) as clips:
        session = ReviewCommandSession(
            settings, environment=environment, reader=reader, browser=browser, quiet=as_json
        )
        rows = asyncio.run(session.review_all(clips))
    if not settings.models and not settings.sample:
        from unreel.api.contacts import describe_local_models

        print_message(*describe_local_models(settings.clips))
    if as_json:
        print_json({"note": session.note, "skipped_links": batch.n_skipped_links, "clips": rows})
    sys.exit(0 if session.is_complete else 1)


def _require_valid_options(settings: ReviewSettings) -> None:
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


def _require_pdf_browser(out: Path | None) -> str:
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
        print_message("--pdf: Chromium shows the clip without its sandbox, because you are root")
    return browser


@contextmanager
def _open_clip_batch(batch: ClipBatch, settings: ReviewSettings) -> Iterator[ClipBatch]:
    """Yield the clips of `batch`; with `--sample`, yield one synthesised clip instead."""
    if not settings.sample:
        yield batch
        return
    from unreel.evaluation.sample_review import write_sample_clip

    with tempfile.TemporaryDirectory(prefix="unreel-") as folder:
        yield ClipBatch(files=(write_sample_clip(Path(folder)),))
