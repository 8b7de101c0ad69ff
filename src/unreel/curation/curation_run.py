"""Execution of a curation recipe: all steps in their order, in one working folder."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import Any, Generic, TypeVar

from unreel.core.errors import InvalidSettingError
from unreel.core.safe_names import make_safe_file_name
from unreel.curation.audit.step import run_audit_step as run_audit
from unreel.curation.clip_screens import run_screen_step as run_screen
from unreel.curation.cluster import run_cluster_step as run_cluster
from unreel.curation.describe import run_describe_step as run_describe
from unreel.curation.duplicates import run_duplicates_step as run_duplicates
from unreel.curation.freeze.media import run_first_frames_step as run_first_frames
from unreel.curation.freeze.step import run_freeze_step as run_freeze
from unreel.curation.inject.step import run_inject_step as run_inject
from unreel.curation.length_matching import run_lengths_step as run_lengths
from unreel.curation.normalise import SegmentRenderSettings
from unreel.curation.normalise import run_render_step as run_render
from unreel.curation.recipe import CurationRecipe, FreezeRecipeSection
from unreel.curation.segment import QUARANTINE
from unreel.curation.segment_table import SegmentWorkDirectory
from unreel.curation.shots import FileScanSettings, ShotDetectorSettings
from unreel.curation.shots import run_crop_step as run_crop
from unreel.curation.shots import run_scan_step as run_scan
from unreel.curation.shots import run_split_step as run_split
from unreel.curation.source_clips import get_source_store
from unreel.curation.source_clips import run_source_step as run_source
from unreel.curation.state import CurationJob, CurationState
from unreel.curation.step_execution import CurationContext
from unreel.curation.watermark.step import run_watermark_step as run_watermark
from unreel.engine.location import (
    get_local_state_folder,
    require_conditional_puts,
    resolve_location,
    translate_store_errors,
)
from unreel.engine.run import open_shared_runner
from unreel.engine.storage_access import ClipAccessSettings

Settings = TypeVar("Settings")


@dataclass(frozen=True, slots=True, kw_only=True)
class CurationRecipeJob(CurationJob):
    """Curation to run: its complete recipe, and the context that each step gets."""

    recipe: CurationRecipe


def open_curation_context(
    recipe: CurationRecipe, out: str | Path | None, access: ClipAccessSettings, *, engine: str
) -> CurationContext:
    """Return the storage and execution settings of the curation at `out`, by default `curations/NAME`."""
    folder = str(out or Path("curations") / make_safe_file_name(recipe.name))
    location = resolve_location(
        folder if "://" in folder else str(Path(folder).absolute()), access.storage
    )
    ledgers = get_local_state_folder(location, access.settings) / "ledgers"
    return CurationContext(place=location, access=access, ledgers=ledgers, engine=engine)


@dataclass(frozen=True, slots=True)
class CurationStep(Generic[Settings]):
    """Step of a curation: its name, the getter of its settings (`None` if unused), and its function."""

    name: str
    settings: Callable[[CurationRecipe], Settings | None]
    take: Callable[[Settings, CurationJob, CurationState], CurationState]


def _build_scan_settings(recipe: CurationRecipe) -> FileScanSettings | None:
    deciding = (recipe.duplicates, recipe.split, recipe.crop, recipe.screen)
    if all(section is None for section in deciding):
        return None
    split, cutter = recipe.split, None
    if split is not None:
        cutter = ShotDetectorSettings(detector=split.detector, threshold=split.threshold)
    return FileScanSettings(cutter=cutter, prints=recipe.duplicates is not None)


def _has_cut_step(recipe: CurationRecipe) -> bool:
    sections = (recipe.split, recipe.crop, recipe.lengths)
    return any(section is not None for section in sections)


def _build_cut_settings(recipe: CurationRecipe) -> SegmentRenderSettings | None:
    """Return settings to cut segments into files, which the watermark step needs; `None` if not needed."""
    due = recipe.watermark is not None and _has_cut_step(recipe)
    return SegmentRenderSettings(form=None, step="cut") if due else None


def _build_render_settings(recipe: CurationRecipe) -> SegmentRenderSettings | None:
    if recipe.normalise is not None:
        return SegmentRenderSettings(form=recipe.normalise.form)
    due = _has_cut_step(recipe) and _build_cut_settings(recipe) is None
    return SegmentRenderSettings(form=None) if due else None


def _get_first_frame_settings(recipe: CurationRecipe) -> FreezeRecipeSection | None:
    return recipe.freeze if recipe.freeze is not None and recipe.freeze.first_frames else None


STEPS: tuple[CurationStep[Any], ...] = (
    CurationStep("ingest", attrgetter("source"), run_source),
    CurationStep("scan", _build_scan_settings, run_scan),
    CurationStep("duplicates", attrgetter("duplicates"), run_duplicates),
    CurationStep("split", attrgetter("split"), run_split),
    CurationStep("crop", attrgetter("crop"), run_crop),
    CurationStep("screen", attrgetter("screen"), run_screen),
    CurationStep("lengths", attrgetter("lengths"), run_lengths),
    CurationStep("cut", _build_cut_settings, run_render),
    CurationStep("watermark", attrgetter("watermark"), run_watermark),
    CurationStep("inject", attrgetter("inject"), run_inject),
    CurationStep("render", _build_render_settings, run_render),
    CurationStep("first_frames", _get_first_frame_settings, run_first_frames),
    CurationStep("describe", attrgetter("describe"), run_describe),
    CurationStep("cluster", attrgetter("cluster"), run_cluster),
    CurationStep("audit", attrgetter("audit"), run_audit),
    CurationStep("freeze", attrgetter("freeze"), run_freeze),
)
"""All steps, in the order of execution."""


def list_recipe_steps(recipe: CurationRecipe) -> list[str]:
    """Return the names of the steps that `recipe` runs, in order."""
    return [step.name for step in STEPS if step.settings(recipe) is not None]


@translate_store_errors()
def run_curation(curation: CurationRecipeJob, *, until: str | None = None) -> CurationState:
    """Run the steps of the recipe in order, up to the step `until`; stored results are reused."""
    context, planned = curation.context, list_recipe_steps(curation.recipe)
    if until is not None and until not in planned:
        raise InvalidSettingError(
            "step", f"the recipe does not take {until!r}", f"It takes: {', '.join(planned)}"
        )
    require_conditional_puts(context.place)
    context.media.require_plain(whole=True)
    directory = SegmentWorkDirectory.of(context)
    with directory.lock():
        directory.clear()
        return _run_curation_steps(curation, until=until)


def _run_curation_steps(curation: CurationRecipeJob, *, until: str | None) -> CurationState:
    context, state = curation.context, CurationState()
    try:
        with open_shared_runner(context.engine) as runner:
            ready = replace(context, access=_allow_recipe_stores(curation), engine=runner)
            work = replace(curation, context=ready)
            for step in STEPS:
                settings = step.settings(curation.recipe)
                if settings is None:
                    continue
                state = step.take(settings, work, state)
                state = replace(state, steps=(*state.steps, step.name))
                SegmentWorkDirectory.of(context).clear(
                    kept_segments=state.segments, excluded=state.left_out
                )
                context.on_taken(step.name, len(state.segments))
                if step.name == until:
                    break
    finally:
        directory = SegmentWorkDirectory.of(context)
        with directory.folder.create_text(QUARANTINE) as file:
            for left in state.left_out.read(directory.folder):
                file.write(json.dumps(asdict(left), ensure_ascii=False) + "\n")
        context.place.put(QUARANTINE, directory.folder.root / QUARANTINE)
        directory.folder.remove(QUARANTINE)
    return state


def _allow_recipe_stores(curation: CurationRecipeJob) -> ClipAccessSettings:
    access, location = curation.context.access, curation.context.place
    stores = [get_source_store(section) for section in curation.recipe.source]
    stores += [] if location.is_local else [location.uri]
    return replace(access, named=(*access.named, *(store for store in stores if store)))
