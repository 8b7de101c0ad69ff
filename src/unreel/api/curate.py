"""Curation: raw video to a frozen benchmark, and what is done with it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from unreel.api.shared_settings import Engine, EngineSettings, TableSettings, TrustSettings
from unreel.core.command_options import NEW_FILE, Option
from unreel.core.registry import needs_extra
from unreel.core.safe_names import make_safe_file_name
from unreel.core.settings import read_environment_settings
from unreel.core.trace import Category, Trace
from unreel.engine.progress import JobCallbacks, Progress

if TYPE_CHECKING:
    from unreel.core.failure import Failure
    from unreel.curation.benchmark_diff import BenchmarkDifference
    from unreel.curation.contact_sheet import WrittenContactSheet
    from unreel.curation.curation_run import CurationForecast, CurationRecipeJob
    from unreel.curation.hub_dataset import HubDatasetFolder
    from unreel.curation.inject.clip_injection import UnsuitableClip
    from unreel.curation.recipe_template import RecipeSourceGuess
    from unreel.curation.segment import CurationState
    from unreel.recipes.documentation import RecipeSectionDescription


@dataclass(frozen=True, kw_only=True)
class RecipeSettings(TableSettings):
    """Settings of a command that reads a curation recipe."""

    recipe: Annotated[Path, Option(is_argument=True, kind="file")]
    changes: Annotated[tuple[str, ...], Option(name="--set", metavar="SECTION.KEY=VALUE")] = ()
    """Value that replaces a setting of the recipe, for example normalise.width=640. Repeatable."""


@dataclass(frozen=True, kw_only=True)
class CurationSettings(TrustSettings, EngineSettings, RecipeSettings):
    """Settings of `open_curation`."""

    out: str | None = None
    """Working folder or s3:// prefix of the curation.  [default: curations/NAME]"""
    workers: Annotated[int | None, Option(low=1)] = None
    """Number of processes per step. Only for --engine ray.  [default: as many as the cluster can run]"""
    accept_leak: bool = False
    """Continue even if the audit finds that file properties reveal the labels."""
    retry_failed: bool = False
    """Retry the clips that failed in earlier calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurationResult:
    """Result of a curation, which may have stopped before the benchmark was frozen."""

    place: str
    """Working folder or prefix of the curation."""
    steps: tuple[str, ...]
    """Names of the finished steps."""
    n_clips: int
    """Number of clips that no step excluded."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Number of excluded clips, by step and reason."""
    n_failed: int = 0
    """Number of clips that were excluded because of an error, not by the rule of a step."""
    leaks: bool = False
    """Whether the audit found that file properties reveal the labels."""
    benchmark: str | None = None
    """Path of the frozen benchmark; `None` before it is frozen, or if a leak was not accepted."""


def curate(
    recipe: str | Path | Mapping[str, Any],
    *,
    out: str | Path | None = None,
    until: str | None = None,
    engine: Engine = "local",
    retry_failed: bool = False,
    accept_leak: bool = False,
    trusted: bool = False,
    on_progress: Callable[[str, Progress], None] | None = None,
) -> CurationResult:
    """Run the steps of `recipe`, from raw files to the frozen benchmark; finished work is kept.

    Args:
        recipe: A TOML file, or its sections as a mapping; relative paths start from the file, or
            from the working directory.
        out: Working folder or `s3://bucket/prefix`; below `curations/` by default.
        until: The last step to run.
        engine: `local` or `ray`.
        retry_failed: Retry failed items.
        accept_leak: Freeze although file properties reveal the labels.
        trusted: Open clips in this process; by default a confined child does.
        on_progress: Callback with a step and its progress, called from another thread.

    Raises:
        InvalidSettingError: The recipe has an unsupported setting.
        MissingExtraError: A package of a step is not installed.
        UnreadableSourceError: A source cannot be read.
    """
    settings = CurationSettings(
        recipe=Path() if isinstance(recipe, Mapping) else Path(recipe),
        out=None if out is None else str(out),
        engine=engine,
        retry_failed=retry_failed,
        accept_leak=accept_leak,
        trusted=trusted,
    )
    curation = open_curation(settings, recipe if isinstance(recipe, Mapping) else None)
    callbacks = None if on_progress is None else JobCallbacks(on_step=on_progress)
    state = run_curation(curation, until=until, callbacks=callbacks)
    return CurationResult(
        place=curation.context.place.uri,
        steps=state.steps,
        n_clips=len(state.segments),
        left_out=state.reasons,
        n_failed=state.n_failed,
        leaks=state.leaks,
        benchmark=None if state.frozen is None else state.frozen.place,
    )


def open_curation(
    settings: CurationSettings, values: Mapping[str, Any] | None = None
) -> "CurationRecipeJob":
    """Read the recipe, and return the job that runs its steps; `values` replace the recipe file."""
    with needs_extra("curate"):
        from unreel.curation.curation_run import CurationRecipeJob, open_curation_context
        from unreel.curation.recipe import parse_curation_recipe, read_curation_recipe
        from unreel.engine.run import ALL_FAILURES, ENGINES
        from unreel.engine.storage_access import build_clip_access_settings
        from unreel.media.access import require_sandbox_protection

    if values is None:
        recipe = read_curation_recipe(settings.recipe, settings.changes)
        root = settings.recipe.absolute().parent
    else:
        recipe, root = parse_curation_recipe(values), Path.cwd()
    environment = read_environment_settings()
    require_sandbox_protection(environment, trusted=settings.trusted)
    access = replace(
        build_clip_access_settings(environment, trusted=settings.trusted),
        outside=settings.allow_outside,
    )
    context = open_curation_context(recipe, settings.out, access, engine=settings.engine)
    if settings.engine == "ray":
        context = replace(context, engine=ENGINES.load("ray")(workers=settings.workers))
    if settings.retry_failed:
        context = replace(context, retry_failed=ALL_FAILURES)
    return CurationRecipeJob(
        recipe=recipe, root=root, context=context, accept_leak=settings.accept_leak
    )


def describe_missing_licences() -> str:
    """Return what to do about clips without a licence."""
    from unreel.curation.segment import GIVE_LICENCE, NO_LICENCE

    return f"{NO_LICENCE}: {GIVE_LICENCE}"


def describe_contacts(curation: "CurationRecipeJob", *, until: str | None) -> Sequence[str]:
    """Return one line for each model server that the steps up to `until` will ask."""
    from unreel.api.contacts import describe_model_servers
    from unreel.curation.curation_run import list_recipe_steps

    planned = list_recipe_steps(curation.recipe)
    steps = planned[: planned.index(until) + 1] if until in planned else planned
    if curation.recipe.describe is None or "describe" not in steps:
        return ()
    models = [curation.recipe.describe.model]
    return tuple(describe_model_servers(models, curation.context.access.settings))


def run_curation(
    curation: "CurationRecipeJob",
    *,
    until: str | None = None,
    callbacks: JobCallbacks | None = None,
) -> "CurationState":
    """Run the steps of an open curation up to `until`; return its state."""
    from unreel.curation.curation_run import run_curation

    if callbacks is not None:
        curation = replace(curation, context=replace(curation.context, callbacks=callbacks))
    return run_curation(curation, until=until)


@dataclass(frozen=True, kw_only=True)
class AuditSettings(TrustSettings, EngineSettings):
    """Settings of `open_audit`."""

    benchmark: Annotated[Path, Option(is_argument=True, kind="existing")]
    normalise: bool = False
    """Re-encode all clips in one format before the audit."""
    texts: Annotated[bool, Option(name="--texts/--no-texts")] = True
    """Read the visible text in the clips and include it in the audit, or skip it."""
    seed: int = 0
    """Random seed for the audit."""
    out: str | None = None
    """Working folder of the audit.  [default: curations/audit-NAME]"""


def open_audit(settings: AuditSettings) -> "CurationRecipeJob":
    """Return the curation that audits a benchmark; run it until `audit`."""
    values: dict[str, Any] = {
        "name": f"audit-{settings.benchmark.name}",
        "seed": settings.seed,
        "require_licence": False,  # nothing is published here
        "source": {"path": str(settings.benchmark.absolute())},
        "audit": {"texts": settings.texts},
    }
    if settings.normalise:
        values["normalise"] = {}
    curation = CurationSettings(
        recipe=Path(), out=settings.out, engine=settings.engine, trusted=settings.trusted
    )
    return open_curation(curation, values)


def forecast_curation(settings: RecipeSettings) -> "CurationForecast":
    """Count the clips, labels, licences, steps and splits of a recipe; no clip is opened."""
    with needs_extra("curate"):
        from unreel.curation.curation_run import forecast_curation
        from unreel.curation.recipe import read_curation_recipe
        from unreel.engine.storage_access import build_clip_access_settings

    recipe = read_curation_recipe(settings.recipe, settings.changes)
    access = build_clip_access_settings(read_environment_settings())
    access = replace(access, outside=settings.allow_outside)
    return forecast_curation(recipe, root=settings.recipe.absolute().parent, access=access)


def write_folder_recipe(folder: Path, recipe: Path) -> "RecipeSourceGuess":
    """Write a commented recipe for the clips in a folder."""
    with needs_extra("curate"):
        from unreel.curation.recipe_template import write_folder_recipe

    return write_folder_recipe(folder, recipe=recipe)


def write_sample(folder: Path) -> tuple[Path, int]:
    """Write a few synthetic clips and their recipe; return the recipe and the number of clips."""
    with needs_extra("curate"):
        from unreel.curation.recipe_template import write_sample_curation

    return write_sample_curation(folder)


def list_recipe_sections(section: str | None) -> "Sequence[RecipeSectionDescription]":
    """Return the sections of a recipe with their keys, or only the section named `section`."""
    with needs_extra("curate"):
        from unreel.curation.recipe_template import find_recipe_sections

    return find_recipe_sections(section)


@dataclass(frozen=True, kw_only=True)
class SheetSettings(TrustSettings):
    """Settings of `write_contact_sheet`."""

    folder: Annotated[Path, Option(is_argument=True, kind="existing folder")]
    out: Annotated[Path | None, NEW_FILE] = None
    """Path of the HTML page to write.  [default: contact-sheet.html next to the benchmark]"""
    max_shown: Annotated[int, Option(name="--most", low=1, high=500)] = 12
    """Maximum number of clips on the page for each split, label and reason for exclusion."""
    seed: int = 0
    """Random seed for the choice of clips on the page."""
    allow_outside: bool = False
    """Also show excluded clips that are stored outside FOLDER and the current folder."""


def write_contact_sheet(settings: SheetSettings) -> "WrittenContactSheet":
    """Write a page with pictures of the curated clips in a folder."""
    with needs_extra("curate"):
        from unreel.curation.contact_sheet import ContactSheetSettings, write_contact_sheet_page
        from unreel.media.access import open_media_reader

    roots = () if settings.allow_outside else (Path.cwd(), settings.folder)
    page_settings = ContactSheetSettings(
        max_shown=settings.max_shown, seed=settings.seed, roots=roots
    )
    with open_media_reader(read_environment_settings(), trusted=settings.trusted) as reader:
        return write_contact_sheet_page(
            settings.folder, settings=page_settings, reader=reader, out=settings.out
        )


@dataclass(frozen=True, kw_only=True)
class PublishSettings:
    """Settings of `write_hub_folder`."""

    folder: Annotated[Path, Option(is_argument=True, kind="existing folder")]
    out: Annotated[Path | None, Option(kind="path")] = None
    """New folder for the files to upload.  [default: the folder hub next to the benchmark]"""
    repo: Annotated[str | None, Option(metavar="OWNER/NAME")] = None
    """Name of the data set on the Hugging Face Hub, for the printed upload commands."""
    accept_leak: bool = False
    """Continue even if the audit finds that file properties reveal the labels."""
    accept_no_licence: bool = False
    """Include clips that have no licence."""


def write_hub_folder(settings: PublishSettings) -> "HubDatasetFolder":
    """Write the upload folder for the Hugging Face Hub from a frozen benchmark."""
    with needs_extra("curate"):
        from unreel.curation.hub_dataset import write_hub_dataset

    return write_hub_dataset(
        settings.folder,
        accept_leak=settings.accept_leak,
        accept_no_licence=settings.accept_no_licence,
        out=settings.out,
        repo=settings.repo,
    )


@dataclass(frozen=True, kw_only=True)
class InjectSettings(TrustSettings):
    """Settings of `inject_trace`."""

    clip: Annotated[Path, Option(is_argument=True, kind="file")]
    category: Annotated[str, Option(kind="category")]
    """Category of the injected trace (a visible fault)."""
    out: Annotated[Path | None, Option(kind="path")] = None
    """Path of the video file to write.  [default: CLIP+CATEGORY.mp4]"""
    seed: int = 0
    """Random seed for the position and form of the injected trace."""
    strength: Annotated[float, Option(kind="strength")] = 0.7
    """Strength of the injected trace; 1 is the strongest."""


def inject_trace(settings: InjectSettings) -> "tuple[Path, Trace | UnsuitableClip | Failure]":
    """Write a copy of a clip with one injected trace; return the file and the trace."""
    with needs_extra("curate"):
        from unreel.curation.inject.clip_injection import inject_trace_into_clip
        from unreel.media.access import open_media_reader

    file = settings.out or Path(
        f"{make_safe_file_name(settings.clip.stem)}+{settings.category}.mp4"
    )
    with open_media_reader(read_environment_settings(), trusted=settings.trusted) as reader:
        trace = inject_trace_into_clip(
            settings.clip,
            reader=reader,
            category=Category(settings.category),
            seed=settings.seed,
            into=file,
            strength=settings.strength,
        )
    return file, trace


def compare_benchmarks(before: Path, after: Path) -> "BenchmarkDifference":
    """Return the differences between two benchmarks."""
    with needs_extra("curate"):
        from unreel.curation.benchmark_diff import compare_benchmarks

    return compare_benchmarks(before, after)
