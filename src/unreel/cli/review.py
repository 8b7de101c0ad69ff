"""`unreel review`: clips before reviewers, with evidence to look at."""

import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from unreel.cli.clip_path import ClipPath
from unreel.cli.completing import complete_models
from unreel.cli.condition import read_conditions
from unreel.cli.instrument import InstrumentName
from unreel.cli.output import json_option, print_json, say, trusted_option
from unreel.cli.showing import showing_options
from unreel.cli.stopping import Stopped
from unreel.core.errors import InvalidSettingError, MachineError, SandboxError
from unreel.core.failure import Failure
from unreel.core.names import plain_name
from unreel.core.settings import Settings, read_settings
from unreel.core.writing import Folder
from unreel.protocols.protocol import REVIEWED

if TYPE_CHECKING:
    from unreel.core.clip import Clip
    from unreel.core.trace import Trace
    from unreel.evaluate.opinion import Opinion
    from unreel.evaluate.review import Inquiry, Review
    from unreel.media.reader import MediaReader
    from unreel.protocols.protocol import Mode
    from unreel.report.review.origin import Origin
    from unreel.report.review.record import Record
    from unreel.reviewers.asking import Desk
    from unreel.reviewers.opening import Opener, OpenReviewer
    from unreel.reviewers.parts import Showing

_FIRST_ASK_S: Final = 0.2
_LATE_S: Final = 1.0
"""An answer that comes later than this is told at once: somebody waits for the others."""
_PIPE_WIDTH: Final = 110
_WRITTEN: Final = ("annotated.mp4", "evidence-clip.mp4", "evidence-clip.webm")
"""Clips that evidence consists of."""
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.argument("clips", nargs=-1, type=ClipPath())
@click.option(
    "--model",
    "models",
    multiple=True,
    shell_complete=complete_models,
    help="Model: provider/name, provider/name@URL, local/FOLDER, recorded, coin, always-real, always-generated. Repeatable.",
)
@click.option(
    "--protocol",
    "protocols",
    multiple=True,
    type=InstrumentName("clip"),
    help="Protocol. Repeatable.  [default: trace, realism]",
)
@click.option(
    "--condition",
    metavar="NAME=VALUE,...",
    help="Model input, for example sampling=paper-8,audio=on.",
)
@click.option("--nframe", type=click.IntRange(1), help="Short for sampling=uniform-N.")
@click.option("--fps", help="Short for sampling=fps-F.")
@click.option(
    "--parser",
    type=click.Choice(["strict", "lenient"]),
    default="strict",
    show_default=True,
    help="Parser: strict reads only the requested format, lenient also its usual variations.",
)
@click.option(
    "--recorded", type=_FILE, help="JSONL file of the answers that the model `recorded` replays."
)
@click.option("--prices", type=_FILE, help="TOML file of prices per model, for the cost.")
@click.option(
    "--deadline",
    "deadline_s",
    type=float,
    help="Timeout of one question in seconds, retries included.",
)
@showing_options
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Output folder of evidence.html, annotated.mp4, stills and result.json.",
)
@click.option(
    "--record",
    "runs",
    multiple=True,
    metavar="RUN",
    help="Run of `unreel eval` with the measured accuracy of a model. Repeatable.",
)
@click.option(
    "--perturb",
    is_flag=True,
    help="Repeat the questions on recompressed, scaled and cropped copies: 4 times the questions.",
)
@click.option(
    "--sample", is_flag=True, help="Review a synthesised clip offline with recorded answers."
)
@trusted_option
@json_option
def review(  # noqa: PLR0913  one parameter for each option
    *,
    clips: tuple[Path, ...],
    condition: str | None,
    nframe: int | None,
    fps: str | None,
    out: Path | None,
    trusted: bool,
    as_json: bool,
    **typed: Any,
) -> None:
    """Ask reviewers about CLIPS: real or generated, where, when and why.

    Nothing is kept but what --out writes. Ends with status 1 when a clip cannot be read, a reviewer
    does not answer, or an answer cannot be understood.
    """
    conditions = read_conditions([condition] if condition else [], nframe=nframe, fps=fps)
    ask = _Ask(condition=conditions[0] if conditions else {}, **typed)
    _check(clips, ask)
    taken = {(out / name).resolve(): name for name in _WRITTEN} if out is not None else {}
    for clip in clips:
        if name := taken.get(clip.resolve()):
            option, problem = "--out", f"a clip itself lies there as {name}, which is written there"
            raise InvalidSettingError(option, problem, "Name another folder")
    from unreel.media.access import media_reader

    settings = read_settings()
    reading = media_reader(settings, trusted=trusted, at_once=("probe", "frames"))
    with reading as reader, _files(clips, ask) as files:
        desk = _Desk(ask, settings=settings, reader=reader, out=out, quiet=as_json)
        rows = asyncio.run(desk.review_all(files))
    if as_json:
        print_json({"note": desk.note, "clips": rows})
    sys.exit(0 if desk.is_complete else 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ask:
    """Options that describe the question."""

    models: tuple[str, ...]
    protocols: tuple[str, ...]
    condition: Mapping[str, str]
    parser: "Mode"
    recorded: Path | None
    prices: Path | None
    deadline_s: float | None
    show: "Showing | None"
    box_space: str | None
    perturb: bool
    runs: tuple[str, ...]
    sample: bool


def _check(clips: Sequence[Path], ask: _Ask) -> None:
    if ask.sample and (clips or ask.models):
        option, remedy = "--sample", "Leave out the clips and --model, or leave out --sample"
        raise InvalidSettingError(option, "brings its own clip and answers", remedy)
    if ask.sample and ask.perturb:
        option, problem = "--perturb", "the sample's answers are recorded for its own clip alone"
        raise InvalidSettingError(option, problem, "Leave it out, or name a clip and --model")
    if not ask.sample and not clips:
        argument, remedy = "CLIPS", "Name a video file, or try `unreel review --sample`"
        raise InvalidSettingError(argument, "missing", remedy)
    if not ask.sample and not ask.models:
        option = "--model"
        remedy = (
            "Name who is asked, such as --model openai/gpt-5, or try --sample, which asks nobody"
        )
        raise InvalidSettingError(option, "missing", remedy)


@contextmanager
def _files(clips: Sequence[Path], ask: _Ask) -> Iterator[Sequence[Path]]:
    if not ask.sample:
        yield clips
        return
    from unreel.evaluate.sample import write_sample

    with tempfile.TemporaryDirectory(prefix="unreel-") as folder:
        yield [write_sample(Path(folder))]


class _Desk:
    """Takes clips in, has them reviewed, and shows what comes back as it comes."""

    def __init__(
        self, ask: _Ask, *, settings: Settings, reader: "MediaReader", out: Path | None, quiet: bool
    ) -> None:
        self._ask, self._settings, self._reader = ask, settings, reader
        self._out, self._quiet = out, quiet
        self.is_complete = True
        self.note = ""
        self._records: tuple[Record, ...] = ()

    async def review_all(self, files: Sequence[Path]) -> list[dict[str, object]]:
        """A row for each file, in order."""
        from unreel.evaluate.review import survey_clip

        # The process that opens files warms up while this one loads the rest.
        loop = asyncio.get_running_loop()
        surveys = [loop.run_in_executor(None, survey_clip, file, self._reader) for file in files]
        inquiry, openers = self._describe()
        self._records = _read_records(self._ask.runs, self._settings)
        from unreel.evaluate.stability import tell_questions
        from unreel.reviewers.asking import Desk
        from unreel.reviewers.opening import ReviewerPool

        if self.note:
            say(self.note)
        if self._ask.perturb:
            say(tell_questions(len(files) * len(inquiry.protocols) * len(openers)))
        rows: list[dict[str, object]] = []
        async with ReviewerPool() as pool:
            reviewers = [pool.open(opener) for opener in openers]
            desk = Desk(self._reader)
            both = zip(files, surveys, strict=True)
            for place, (file, survey) in enumerate(both, start=1):
                folder = self._out
                if folder is not None and len(files) > 1:
                    folder = Folder(folder).make(f"{place:03d}-{plain_name(file.stem)}")
                ask = partial(self._ask_about, reviewers=reviewers, inquiry=inquiry, desk=desk)
                rows.append(await self._row_of(file, survey, ask=ask, folder=folder))
        return rows

    async def _row_of(
        self,
        file: Path,
        survey: "Awaitable[Clip | Failure]",
        *,
        ask: "Callable[[Clip], Coroutine[Any, Any, Review]]",
        folder: Path | None,
    ) -> dict[str, object]:
        """Return the result of one file; a failure does not stop the next one."""
        from unreel.engine.stage import failure_of

        try:
            clip = await survey
            if not isinstance(clip, Failure):
                found = asyncio.create_task(ask(clip))
                # The question first: reading the origin starts a process that slows it down.
                await asyncio.wait([found], timeout=_FIRST_ASK_S)
                from unreel.report.review.origin import read_origin

                origin = await asyncio.to_thread(
                    read_origin,
                    clip,
                    reader=self._reader,
                    without_seccomp=bool(self._settings.media_without_seccomp),
                    drawn=self._ask.sample,
                )
                return self._report(await found, origin, folder)
        except (MachineError, SandboxError):
            raise
        except Exception as error:  # noqa: BLE001  a failed clip is a row, whatever it raised
            clip = failure_of(error)
        self.is_complete = False
        say(f"{file}: {clip}")
        return {"file": str(file), "failure": clip}

    def _describe(self) -> "tuple[Inquiry, tuple[Opener, ...]]":
        from unreel.cli.contacts import require_somebody, tell_contacts
        from unreel.evaluate.review import describe_reviewers, inquire, taught_protocols

        ask = self._ask
        protocols = ask.protocols or taught_protocols(ask.models) or REVIEWED
        inquiry = inquire(protocols, ask.condition, mode=ask.parser, models=ask.models)
        if ask.sample:
            from unreel.evaluate.sample import NOTE, sample_reviewers

            self.note = NOTE
            return inquiry, sample_reviewers()
        tell_contacts(ask.models, self._settings)
        require_somebody(ask.models, self._settings)
        openers = describe_reviewers(
            ask.models,
            inquiry,
            settings=self._settings,
            recorded=ask.recorded,
            prices=ask.prices,
            deadline_s=ask.deadline_s,
            show=ask.show,
            box_space=ask.box_space,
        )
        recorded = [opener.name for opener in openers if opener.name.startswith("recorded:")]
        if recorded:
            self.note = f"The answers of {', '.join(recorded)} are recorded: nobody was asked now."
        return inquiry, openers

    async def _ask_about(
        self,
        clip: "Clip",
        *,
        reviewers: "Sequence[OpenReviewer]",
        inquiry: "Inquiry",
        desk: "Desk",
    ) -> "Review":
        from unreel.evaluate.review import review_clip

        asked_s = time.monotonic()

        def tell(opinion: "Opinion") -> None:
            if time.monotonic() - asked_s > _LATE_S:
                protocol = opinion.question.instrument.protocol
                say(f"{opinion.reviewer}, {protocol}: {opinion.headline}")

        found = await review_clip(clip, reviewers, inquiry=inquiry, desk=desk, on_opinion=tell)
        if not self._ask.perturb:
            return found
        from unreel.evaluate.perturbing import ask_again

        return await ask_again(
            found,
            reviewers,
            inquiry=inquiry,
            desk=desk,
            reader=self._reader,
            on_variant=lambda variant: say(f"asks again, {variant.name}: {variant}"),
        )

    def _report(self, found: "Review", origin: "Origin", folder: Path | None) -> dict[str, object]:
        from unreel.report.review.opinion_text import NO_PROOF
        from unreel.report.review.result import review_document

        self.is_complete &= found.is_complete
        if not self._quiet:
            self._show(found, origin)
            say(NO_PROOF)
        row = review_document(found, origin, records=self._records)
        if folder is not None:
            row["evidence"] = self._write(found, folder, origin)
        return row

    def _show(self, found: "Review", origin: "Origin") -> None:
        from unreel.cli.console import open_console
        from unreel.report.review.terminal import review_blocks

        console = open_console(pipe_width=_PIPE_WIDTH)
        for block in review_blocks(found, origin, self._records):
            console.print(block)

    def _write(self, found: "Review", folder: Path, origin: "Origin") -> dict[str, object]:
        from unreel.cli.meter import copy_meter
        from unreel.report.review.evidence import PAGE, Background, write_evidence

        truth: tuple[Trace, ...] = ()
        if self._ask.sample:
            from unreel.evaluate.sample_clip import sample_truth

            truth = sample_truth()
        background = Background(
            origin=origin,
            made_at=datetime.now(UTC),
            truth=truth,
            note=self.note,
            records=self._records,
        )
        try:
            with copy_meter(found.clip.facts.video.n_frames) as on_frames:
                evidence = write_evidence(
                    found,
                    folder,
                    reader=self._reader,
                    background=background,
                    on_page=lambda page: say(f"evidence in {page}"),
                    on_frames=on_frames,
                )
        except Stopped as stopped:
            stopped.add_note(f"what was answered is in {folder / PAGE}, without an annotated copy")
            raise
        if isinstance(evidence.annotated, Failure):
            say(f"no annotated copy: {evidence.annotated}")
        return {
            "page": str(evidence.page),
            "result": str(evidence.result),
            "annotated": _path_or_failure(evidence.annotated),
            **evidence.stills.to_json(),
        }


def _read_records(runs: Sequence[str], settings: Settings) -> "tuple[Record, ...]":
    if not runs:
        return ()
    from unreel.evaluate.finding import open_named_run
    from unreel.report.review.record_run import read_records

    return tuple(record for run in runs for record in read_records(open_named_run(run, settings)))


def _path_or_failure(written: Path | Failure) -> object:
    return str(written) if isinstance(written, Path) else written
