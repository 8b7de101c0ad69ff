"""Creators of a season: their entries, and requests for their missing clips."""

from collections.abc import Iterable, Iterator
from decimal import Decimal
from pathlib import Path

from unreel.arena.run.make_clips import ClipGenerationStage
from unreel.arena.run.reviewers import SeasonRunContext
from unreel.arena.season.folder import EnteredCreator, SeasonFolder, format_creator_folder_name
from unreel.arena.season.scenes import (
    add_real_clip_columns,
    assign_scene_file_names,
    build_name_only_brief,
    iter_clip_request_rows,
)
from unreel.core.failure import FailureReason
from unreel.core.output_files import OutputDirectory
from unreel.creators.config import CreatorFactory, CreatorRecipeSection
from unreel.creators.contract import ClipClass
from unreel.creators.folder import FolderCreator
from unreel.engine.clip_facts import StoredClipFacts
from unreel.engine.pending_questions import PendingQuestionFilter
from unreel.engine.progress import JobCallbacks
from unreel.engine.run import JobRunSummary
from unreel.engine.run import run_pending_questions as run_stages
from unreel.engine.stage import Row
from unreel.evaluation.review_stage import add_row_costs

UNPAID = frozenset({FailureReason.BUDGET_SPENT.value})
"""Failure reasons of clips that were not requested and are due in the next run."""


def build_season_creators(
    sections: Iterable[CreatorRecipeSection], before: Iterable[EnteredCreator]
) -> tuple[EnteredCreator, ...]:
    """Return the creators in the recipe of a season, then those that were removed from the recipe."""
    named = [_build_entered_creator(section) for section in sections]
    names = {creator.name for creator in named}
    gone = [creator for creator in before if creator.name not in names]
    return (*named, *(creator.model_copy(update={"retired": True}) for creator in gone))


def _build_entered_creator(section: CreatorRecipeSection) -> EnteredCreator:
    held = section.held
    return EnteredCreator(
        title=section.name,
        name=section.stable_name,
        kind=section.kind,
        side=section.keys.side if held is None else ClipClass.GENERATED,
        settings=tuple(setting.value for setting in section.settings or section.keys.usual),
        held=held or "",
    )


def count_pending_clips(factory: CreatorFactory, asking: SeasonRunContext) -> tuple[int, int]:
    """Return the number of clips still to request from a creator, and of failed clips not retried."""
    table = asking.folder.made
    keys = [row["key"] for row in _iter_creator_rows(factory, asking)]
    due = PendingQuestionFilter(table, UNPAID.union(asking.retry_failed)).are_due(keys)
    states = table.held([key for key, is_due in zip(keys, due, strict=True) if not is_due])
    return sum(due), sum(state.reason is not None for state in states.values())


def find_missing_creator_files(
    factory: CreatorFactory, asking: SeasonRunContext
) -> tuple[str, ...]:
    """Return the expected files that are missing in a creator's folder; empty for other creator kinds."""
    if factory.given != "name":
        return ()
    creator = factory.open()
    if not isinstance(creator, FolderCreator):
        return ()
    stems = assign_scene_file_names(asking.scenery.scenes)
    briefs = [build_name_only_brief(*names, s) for names in stems.items() for s in factory.settings]
    return tuple(creator.find_missing(briefs))


def find_first_clip_failure(factory: CreatorFactory, asking: SeasonRunContext) -> str:
    """Return the reason and detail of a stored failed clip of the creator; "" if no clip failed."""
    keys = [row["key"] for row in _iter_creator_rows(factory, asking)]
    failed = {key for key, state in asking.folder.made.held(keys).items() if state.reason}
    columns = ["key", "failure_reason", "failure_detail"]
    rows = asking.folder.made.rows(columns, where="failure_reason IS NOT NULL") if failed else ()
    failures = (row for row in rows if row["key"] in failed)
    return next((f"{row['failure_reason']}: {row['failure_detail']}" for row in failures), "")


def _iter_creator_rows(factory: CreatorFactory, asking: SeasonRunContext) -> Iterator[Row]:
    return iter_clip_request_rows(factory, asking.scenery, seed=asking.season.recipe.seed)


def generate_missing_clips(
    factory: CreatorFactory,
    asking: SeasonRunContext,
    *,
    limit: int | None,
    left_usd: Decimal | None,
    callbacks: JobCallbacks,
) -> tuple[JobRunSummary, int]:
    """Request at most `limit` missing clips for `left_usd`; return run summary and number missing."""
    folder = asking.folder
    retry = UNPAID.union(asking.retry_failed)
    due = list(PendingQuestionFilter(folder.made, retry).sift(_iter_creator_rows(factory, asking)))
    callbacks.on_due("made", len(due[:limit]))
    survey = StoredClipFacts(folder.benchmark_clips)
    done = run_stages(
        add_real_clip_columns(due[:limit], asking.scenery, survey),
        [ClipGenerationStage(factory, asking.access, folder=folder.path, left_usd=left_usd)],
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
