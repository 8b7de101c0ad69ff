"""Creators of a season: their entries, and the generation of their missing clips."""

import asyncio
import json
import time
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from unreel.arena.run.question_plan import SeasonRunContext
from unreel.arena.season.folder import (
    MADE_FOLDER,
    NOTES,
    WORK_FOLDER,
    EnteredCreator,
    SeasonFolder,
    format_creator_folder_name,
)
from unreel.arena.season.scenes import (
    add_real_clip_columns,
    assign_scene_file_names,
    build_clip_brief,
    iter_clip_request_rows,
)
from unreel.core.clip import ClipFacts
from unreel.core.content_ids import compute_clip_id
from unreel.core.errors import InvalidValueError, MediaError, raise_if_machine_error
from unreel.core.failure import Failure, FailureReason
from unreel.core.input_files import parse_json_object
from unreel.core.output_files import OutputDirectory
from unreel.core.safe_names import get_safe_suffix
from unreel.creators.config import CreatorFactory, CreatorRecipeSection
from unreel.creators.contract import ClipBrief, ClipClass, GeneratedClip
from unreel.creators.folder import FolderCreator
from unreel.engine.allowed_locations import require_allowed_location
from unreel.engine.clip_facts import FACTS, StoredClipFacts
from unreel.engine.downloads import download_file, download_public_file
from unreel.engine.pending_questions import PendingQuestionFilter
from unreel.engine.progress import JobCallbacks
from unreel.engine.run import JobRunSummary
from unreel.engine.run import run_pending_questions as run_stages
from unreel.engine.stage import MediaStage, Row, WorkerResources, convert_to_failed_row
from unreel.engine.storage_access import ClipAccessSettings, provide_local_clip_file
from unreel.evaluation.run_job import add_row_costs

_NOTES = "notes.json"
_MAX_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class SeasonCreatorContext:
    """Context that a creator gets for one clip: a working folder, notes on disk, and downloads."""

    root: Path
    key: str
    """Key of the clip's row."""
    access: ClipAccessSettings

    @property
    def folder(self) -> Path:
        """Return the working folder of this clip; create it if it is missing."""
        return OutputDirectory(self.root).make(f"{WORK_FOLDER}/{self.key}")

    def recall(self, what: str) -> str | None:
        """Return the note stored under the key `what` by this or an earlier process; `None` if missing."""
        return self._noted().get(what)

    def note(self, what: str, text: str) -> None:
        """Store `text` under the key `what`; it is on disk when this returns."""
        folder = f"{NOTES}/{self.key}"
        data = json.dumps(self._noted() | {what: text}, ensure_ascii=True)
        files = OutputDirectory(self.root)
        files.write(f"{folder}/{_NOTES}", data.encode())
        files.sync_to_disk(folder)

    async def fetch(self, url: str, into: Path) -> Failure | None:
        """Download the untrusted `url` into the working folder's file `into`; return the failure or `None`."""
        return await asyncio.to_thread(self._fetch, url, into)

    def _fetch(self, url: str, into: Path) -> Failure | None:
        """Download with storage settings if the URL is allowed, else from the public internet only."""
        reach = self.access.reach
        try:
            name = into.relative_to(self.folder).as_posix()
            with OutputDirectory(self.folder).create(name) as file:
                try:
                    require_allowed_location(url, reach.named)
                except InvalidValueError:
                    download_public_file(
                        url, file, max_bytes=reach.max_bytes, seconds=reach.seconds
                    )
                else:
                    download_file(url, file, policy=reach, storage=self.access.storage)
        except MediaError as error:
            return error.failure
        except ValueError:
            return Failure(FailureReason.NOT_A_FILE, "the target is outside the workplace")
        return None

    def _noted(self) -> dict[str, str]:
        try:
            with OutputDirectory(self.root).read(f"{NOTES}/{self.key}/{_NOTES}") as file:
                notes = parse_json_object(file.read(_MAX_BYTES))
        except (FileNotFoundError, InvalidValueError):
            return {}
        return {word: note for word, note in notes.items() if isinstance(note, str)}


_MADE = "made"
"""Key of the note about a finished clip, which is not paid again if a kill prevents its row."""
_SUFFIX = ".mp4"


class ClipGenerationStage(MediaStage):
    """Stage that sends a row's brief to the creator and stores the clip in the season's directory."""

    opened = MediaStage.opened | {"_creator"}

    def __init__(
        self,
        factory: CreatorFactory,
        access: ClipAccessSettings,
        *,
        folder: Path,
        left_usd: Decimal | None,
    ) -> None:
        super().__init__(access, WorkerResources(in_flight=max(1, factory.at_once)))
        self._opener = factory
        self._root = folder
        self._left_usd = left_usd

    def setup(self) -> None:
        super().setup()
        self._creator = self._opener.open()

    async def __call__(self, row: Row) -> Row:
        context = SeasonCreatorContext(root=self._root, key=row["key"], access=self._access)
        if (stored := await asyncio.to_thread(self._find_made, row, context)) is not None:
            return stored
        if self._left_usd is not None and self._left_usd <= 0:
            detail = "the season's budget is spent: the creator was not queried"
            return convert_to_failed_row(row, Failure(FailureReason.BUDGET_SPENT, detail))
        location = row.get("_location")
        with (
            nullcontext(None)
            if location is None
            else provide_local_clip_file(location, self._access)
        ) as file:
            brief = await asyncio.to_thread(
                build_clip_brief, row, file, self._reader, self._opener.given
            )
            began_ns = time.monotonic_ns()
            clip = brief if isinstance(brief, Failure) else await self._make(brief, context)
        if isinstance(clip, Failure):
            return convert_to_failed_row(row, clip)
        if self._left_usd is not None and clip.cost_usd is not None:
            self._left_usd -= clip.cost_usd
        took_us = (time.monotonic_ns() - began_ns) // 1000
        new_row = await asyncio.to_thread(self._take, row, clip, context, took_us)
        return convert_to_failed_row(row, new_row) if isinstance(new_row, Failure) else new_row

    async def close(self) -> None:
        await self._creator.close()
        super().close()

    async def _make(
        self, brief: ClipBrief, context: SeasonCreatorContext
    ) -> GeneratedClip | Failure:
        try:
            clip: object = await self._creator.make(brief, context)
        except Exception as error:  # noqa: BLE001  somebody's mistake costs one clip
            raise_if_machine_error(error)
            return Failure(FailureReason.STAGE_FAILED, f"{type(error).__name__}: {error}")
        if not isinstance(clip, GeneratedClip | Failure):
            detail = f"make gave {type(clip).__name__}, and not a GeneratedClip or a Failure"
            return Failure(FailureReason.MALFORMED_REPLY, detail)
        return clip

    def _take(
        self, row: Row, clip: GeneratedClip, context: SeasonCreatorContext, took_us: int
    ) -> Row | Failure:
        """Check a clip, move it into the season's folder and delete its working folder; return row or failure."""
        files, folder = OutputDirectory(self._root), f"{WORK_FOLDER}/{row['key']}"
        facts = self._look_at(clip.file, context.folder)
        if isinstance(facts, Failure):
            files.remove_folder(folder)
            return facts
        below = f"{MADE_FOLDER}/{format_creator_folder_name(row['creator'], row['name'])}"
        name = f"{below}/{row['key'][:32]}{get_safe_suffix(clip.file.name) or _SUFFIX}"
        if not files.hard_link(clip.file.resolve(), name):
            files.copy(clip.file, name)
        columns = {
            "model": clip.model,
            "parameters": json.dumps(dict(clip.parameters), sort_keys=True),
            "traces": clip.traces,
            "cost_usd": None if clip.cost_usd is None else float(clip.cost_usd),
            "took_us": took_us,
            "sha256": compute_clip_id(self._root / name),
            "size_bytes": files.size(name),
            "facts": FACTS.dump_json(facts).decode(),
            "file": name,
        }
        context.note(_MADE, json.dumps(columns))
        files.remove_folder(folder)
        return row | columns

    def _find_made(self, row: Row, context: SeasonCreatorContext) -> Row | None:
        """Return the row of a clip that an earlier process generated but did not record, or `None`."""
        noted = context.recall(_MADE)
        if noted is None or row["attempt"] > 1:
            return None
        made: dict[str, Any] = json.loads(noted)
        file = self._root / made["file"]
        return row | made if file.is_file() and compute_clip_id(file) == made["sha256"] else None

    def _look_at(self, file: Path, folder: Path) -> ClipFacts | Failure:
        """Check a file that a creator generated, and return its properties, or a failure.

        The file must be a regular file in the creator's working `folder`. Two frames are decoded too,
        because a header can be wrong.
        """
        inside = file.resolve().is_relative_to(folder.resolve())
        if file.is_symlink() or not file.is_file() or not inside:
            return Failure(FailureReason.NOT_A_FILE, "the creator left no file in its workplace")
        size, max_bytes = file.stat().st_size, self._access.settings.fetch_mb << 20
        if size > max_bytes:
            return Failure(FailureReason.TOO_LARGE, f"{size} bytes, and {max_bytes} at most")
        facts = self._reader.probe(file)
        if isinstance(facts, Failure):
            return facts
        frames = self._reader.frames(file, sampling="uniform-2", longest_side=64)
        return frames if isinstance(frames, Failure) else facts


UNPAID = frozenset({FailureReason.BUDGET_SPENT.value})
"""Failure reasons of clips that were not requested and are due in the next run."""


def build_season_creators(
    sections: Iterable[CreatorRecipeSection], earlier_creator: Iterable[EnteredCreator]
) -> tuple[EnteredCreator, ...]:
    """Return the creators in the recipe of a season, then those that were removed from the recipe."""
    named = [
        EnteredCreator(
            title=section.name,
            name=section.stable_name,
            kind=section.kind,
            side=section.keys.side if section.held is None else ClipClass.GENERATED,
            settings=tuple(setting.value for setting in section.settings or section.keys.usual),
            held=section.held or "",
        )
        for section in sections
    ]
    names = {creator.name for creator in named}
    gone = [creator for creator in earlier_creator if creator.name not in names]
    return (*named, *(creator.model_copy(update={"retired": True}) for creator in gone))


def count_pending_clips(factory: CreatorFactory, context: SeasonRunContext) -> tuple[int, int]:
    """Return the number of clips still to request from a creator, and of failed clips not retried."""
    table = context.folder.made
    keys = [row["key"] for row in _iter_creator_rows(factory, context)]
    due = PendingQuestionFilter(table, UNPAID.union(context.retry_failed)).are_due(keys)
    states = table.held([key for key, is_due in zip(keys, due, strict=True) if not is_due])
    return sum(due), sum(reason is not None for reason in states.values())


def find_missing_creator_files(
    factory: CreatorFactory, context: SeasonRunContext
) -> tuple[str, ...]:
    """Return the expected files that are missing in a creator's folder; empty for other creator kinds."""
    if factory.given != "name":
        return ()
    creator = factory.open()
    if not isinstance(creator, FolderCreator):
        return ()
    briefs = [
        ClipBrief(
            id=scene, setting=setting, width=1, height=1, duration_us=1, seed=0, file_stem=stem
        )
        for scene, stem in assign_scene_file_names(context.benchmark.scenes).items()
        for setting in factory.settings
    ]
    return tuple(creator.find_missing(briefs))


def find_first_clip_failure(factory: CreatorFactory, context: SeasonRunContext) -> str:
    """Return the reason and detail of a stored failed clip of the creator; "" if no clip failed."""
    keys = [row["key"] for row in _iter_creator_rows(factory, context)]
    failed = {key for key, reason in context.folder.made.held(keys).items() if reason}
    columns = ["key", "failure_reason", "failure_detail"]
    rows = context.folder.made.rows(columns, where="failure_reason IS NOT NULL") if failed else ()
    failures = (row for row in rows if row["key"] in failed)
    return next((f"{row['failure_reason']}: {row['failure_detail']}" for row in failures), "")


def _iter_creator_rows(factory: CreatorFactory, context: SeasonRunContext) -> Iterator[Row]:
    return iter_clip_request_rows(factory, context.benchmark, seed=context.season.recipe.seed)


def generate_missing_clips(
    factory: CreatorFactory,
    context: SeasonRunContext,
    *,
    limit: int | None,
    left_usd: Decimal | None,
    callbacks: JobCallbacks,
) -> tuple[JobRunSummary, int]:
    """Request at most `limit` missing clips for `left_usd`; return run summary and number missing."""
    folder = context.folder
    retry = UNPAID.union(context.retry_failed)
    due = list(
        PendingQuestionFilter(folder.made, retry).iter_due(_iter_creator_rows(factory, context))
    )
    callbacks.on_due("made", len(due[:limit]))
    survey = StoredClipFacts(folder.benchmark_clips)
    done = run_stages(
        add_real_clip_columns(due[:limit], context.benchmark, survey),
        [ClipGenerationStage(factory, context.access, folder=folder.path, left_usd=left_usd)],
        table=folder.made,
        retry_failed=retry,
        ledger=get_start_log_path(folder, format_creator_folder_name(factory.title, factory.name)),
        add_up=add_row_costs,
        on_progress=lambda progress: callbacks.on_step("made", progress),
        observe=lambda step, n_rows: callbacks.observe(f"made-{step}", n_rows),
    )
    return done, len(due)


def get_start_log_path(folder: SeasonFolder, what: str) -> Path:
    """Return the start log's path of the run's part `what`, for example one creator."""
    return OutputDirectory(folder.path).make("ledgers") / f"{what}.ledger"
