"""Checks of a creator's entry, before the season pays for anything."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Final

from unreel.arena.season.recipe import SeasonRecipe
from unreel.arena.season.scenes import SeasonBenchmark, assign_scene_file_names
from unreel.arena.submission.clip_copies import copy_entry_clips, iter_unmatched_clip_names
from unreel.arena.submission.clip_inspection import (
    NEAR_BITS,
    ClipInspectionResult,
    ClipToInspect,
    FingerprintedClip,
    find_copies_of_real_clips,
    find_near_copies,
    inspect_clips,
    iter_label_leak_findings,
)
from unreel.arena.submission.entry import EntryFinding, EntryFindingSeverity
from unreel.core.clip import ClipFacts
from unreel.core.errors import MediaError
from unreel.core.failure import Failure
from unreel.creators.config import CreatorRecipeSection
from unreel.creators.contract import ClipClass, CreatorInput
from unreel.creators.folder import FolderCreatorConfig
from unreel.engine.storage_access import ClipAccessSettings, provide_local_clip_file
from unreel.media.access import open_media_reader

SHORTEST_S: Final = Fraction(1, 2)
LONGEST_S: Final = Fraction(120)
FEWEST_FRAMES: Final = 8
SLOWEST: Final = Fraction(5)
FASTEST: Final = Fraction(240)
SMALLEST_SIDE: Final = 32
MOST_APART: Final = 2
"""Maximum ratio of a clip's length, rate or width to the real clip's; larger ratios reveal the label."""


def iter_entry_clip_findings(
    name: str, facts: ClipFacts, real: ClipFacts | None
) -> Iterator[EntryFinding]:
    """Yield a clip's own problems and, with `real`, differences from the scene's real clip."""
    for check, problem in _iter_clip_problems(facts):
        yield EntryFinding(
            check=check, weight=EntryFindingSeverity.REFUSES, words=problem, clips=(name,)
        )
    for check, problem in _iter_comparison_problems(facts, real) if real is not None else ():
        yield EntryFinding(
            check=check, weight=EntryFindingSeverity.WARNS, words=problem, clips=(name,)
        )


def _iter_clip_problems(facts: ClipFacts) -> Iterator[tuple[str, str]]:
    video = facts.video
    if not SHORTEST_S <= video.duration_s <= LONGEST_S:
        ends = f"{float(SHORTEST_S):g} and {float(LONGEST_S):g} s"
        yield "length", f"clips last between {ends}. Change the length"
    if video.n_frames < FEWEST_FRAMES:
        yield "length", f"a clip has {FEWEST_FRAMES} frames or more. Make them longer"
    if not SLOWEST <= video.average_rate <= FASTEST:
        yield "rate", f"a clip has {SLOWEST} to {FASTEST} frames a second. Change the rate"
    if min(video.width, video.height) < SMALLEST_SIDE:
        yield "size", f"a side has {SMALLEST_SIDE} pixels or more. Make them larger"


def _iter_comparison_problems(facts: ClipFacts, real: ClipFacts) -> Iterator[tuple[str, str]]:
    video, other = facts.video, real.video
    if _is_ratio_too_large(video.duration_s, other.duration_s):
        yield "length", "much longer or shorter than the real clip: length alone may reveal it"
    if _is_ratio_too_large(video.average_rate, other.average_rate):
        yield "rate", "much faster or slower in frames than the real clip: the rate may reveal it"
    if _is_ratio_too_large(Fraction(video.width), Fraction(other.width)):
        yield "size", "much wider or narrower than the real clip: the size may reveal it"
    if (video.width > video.height) != (other.width > other.height):
        yield (
            "size",
            "landscape while the real clip is portrait, or vice versa: the shape reveals it",
        )
    if video.variable_rate and not other.variable_rate:
        yield "rate", "the frame rate varies; that of the real clip is constant"
    if bool(facts.audio) != bool(real.audio):
        has = "sound, the real clip has none" if facts.audio else "no sound, the real clip has some"
        yield "sound", f"{has}: a reviewer with sound can separate them"


def _is_ratio_too_large(a: Fraction, b: Fraction) -> bool:
    low, high = sorted((a, b))
    return high > MOST_APART * low


MOST_NEAR: Final = 0.2
"""Maximum fraction of an entry's clips that are near-copies of real ones; static scenes cause some."""
_PRICES: Final = ("usd_per_clip", "usd_per_second")
_OWNER: Final = "entry"


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryCheckContext:
    """Data that the checks of an entry need: season, benchmark, hidden scenes and storage access."""

    recipe: SeasonRecipe
    scenery: SeasonBenchmark
    hidden: frozenset[str]
    """Hidden scenes, which entrants do not have; their clips are not required."""
    folder: Path
    """Folder of the season."""
    access: ClipAccessSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryCheckResult:
    """Result of the checks of an entry: the problems found, and the hash of each copied clip."""

    findings: tuple[EntryFinding, ...]
    sha256: Mapping[str, str]


def check_creator_entry(
    section: CreatorRecipeSection, grounds: EntryCheckContext, *, into: Path
) -> EntryCheckResult:
    """Check a creator's entry; clips that it submits as a folder are copied to `into` and inspected."""
    findings = [
        *_iter_kind_findings(section),
        *_iter_price_findings(section, grounds),
        *_iter_prompt_findings(section, grounds),
    ]
    keys = section.keys
    if not isinstance(keys, FolderCreatorConfig):
        return EntryCheckResult(findings=tuple(findings), sha256={})
    access = grounds.access
    factory = section.opener(settings=access.settings, trusted=access.trusted)
    stems = assign_scene_file_names(grounds.scenery.scenes)
    open_scenes = {scene: stem for scene, stem in stems.items() if scene not in grounds.hidden}
    copied = copy_entry_clips(factory, open_scenes, into=into, root=grounds.folder, access=access)
    strange = tuple(iter_unmatched_clip_names(Path(keys.folder), stems, factory.settings))
    if strange:
        fault = "no scene of the season has these names. Take them out, or name them after a scene"
        findings.append(
            EntryFinding(
                check="ids", weight=EntryFindingSeverity.REFUSES, words=fault, clips=strange
            )
        )
    looks, unread = _inspect_entry_clips(copied.subjects, grounds)
    findings += [*copied.findings, *unread, *_iter_clip_findings(looks, grounds)]
    return EntryCheckResult(
        findings=tuple(findings), sha256={look.subject.name: look.sha256 for look in looks}
    )


def _iter_kind_findings(section: CreatorRecipeSection) -> Iterator[EntryFinding]:
    if section.held is not None or section.keys.side is ClipClass.CONTROL:
        problem = "it makes no clips of its own, so that it cannot be ranked. Ask the organiser to add it to the season"
        yield EntryFinding(check="kind", weight=EntryFindingSeverity.REFUSES, words=problem)


def _iter_price_findings(
    section: CreatorRecipeSection, grounds: EntryCheckContext
) -> Iterator[EntryFinding]:
    priced = [key for key in _PRICES if key in type(section.keys).model_fields]
    known = any(getattr(section.keys, key) is not None for key in priced)
    if priced and not known and grounds.recipe.budget.max_cost_usd is not None:
        problem = f"the season has a budget, and no price is named. Write {' or '.join(priced)}"
        yield EntryFinding(check="price", weight=EntryFindingSeverity.REFUSES, words=problem)


def _iter_prompt_findings(
    section: CreatorRecipeSection, grounds: EntryCheckContext
) -> Iterator[EntryFinding]:
    """Yield a warning about scenes without the prompt that the creator's settings need."""
    wordless = tuple(s for s, entry in grounds.scenery.scenes.items() if not entry.prompt.strip())
    settings = section.settings or section.keys.usual
    if (
        wordless
        and set(settings) != {CreatorInput.IMAGE}
        and not isinstance(section.keys, FolderCreatorConfig)
    ):
        problem = "the benchmark has no prompt for these scenes: their clips will be missing"
        yield EntryFinding(
            check="prompts", weight=EntryFindingSeverity.WARNS, words=problem, clips=wordless
        )


def _inspect_entry_clips(
    subjects: Sequence[ClipToInspect], grounds: EntryCheckContext
) -> tuple[list[ClipInspectionResult], list[EntryFinding]]:
    access = grounds.access
    with open_media_reader(access.settings, trusted=access.trusted) as reader:
        results = inspect_clips(subjects, reader)
    looks = [look for look in results if isinstance(look, ClipInspectionResult)]
    unread = [
        EntryFinding(
            check="decoding",
            weight=EntryFindingSeverity.REFUSES,
            words="clips must be complete. Encode them again, as H.264 in mp4",
            clips=(f"{subject.name}: {look}",),
        )
        for subject, look in zip(subjects, results, strict=True)
        if isinstance(look, Failure)
    ]
    return looks, unread


def _iter_clip_findings(
    looks: Sequence[ClipInspectionResult], grounds: EntryCheckContext
) -> Iterator[EntryFinding]:
    real = _inspect_real_clips(grounds)
    by_scene = {look.subject.scene: look for look in real}
    for look in looks:
        beside = by_scene.get(look.subject.scene)
        facts = None if beside is None else beside.facts
        yield from iter_entry_clip_findings(look.subject.name, look.facts, facts)
    yield from _iter_duplicate_findings(looks)
    yield from _iter_copy_findings(looks, real)
    yield from iter_label_leak_findings(looks, real, seed=grounds.recipe.seed)


def _inspect_real_clips(grounds: EntryCheckContext) -> list[ClipInspectionResult]:
    """Inspect the real clip of each scene of the season; unreadable clips are omitted."""
    benchmark, access = grounds.scenery.benchmark, grounds.access
    with (
        open_media_reader(access.settings, trusted=access.trusted) as reader,
        ExitStack() as copies,
    ):
        subjects = []
        for scene, entry in grounds.scenery.scenes.items():
            with suppress(MediaError):
                file = copies.enter_context(provide_local_clip_file(benchmark.find(entry), access))
                subjects.append(ClipToInspect(name=entry.name, scene=scene, file=file))
        results = inspect_clips(subjects, reader)
    return [look for look in results if isinstance(look, ClipInspectionResult)]


def _iter_duplicate_findings(looks: Sequence[ClipInspectionResult]) -> Iterator[EntryFinding]:
    by_bytes: defaultdict[str, list[str]] = defaultdict(list)
    for look in looks:
        by_bytes[look.sha256].append(look.subject.name)
    for names in by_bytes.values():
        if len(names) > 1:
            problem = "one file under several names. Submit a clip for each scene"
            yield EntryFinding(
                check="duplicates",
                weight=EntryFindingSeverity.REFUSES,
                words=problem,
                clips=tuple(names),
            )


def _iter_copy_findings(
    looks: Sequence[ClipInspectionResult], real: Sequence[ClipInspectionResult]
) -> Iterator[EntryFinding]:
    entered = [
        FingerprintedClip(clip=f"entry {k.subject.name}", owner=_OWNER, own=k.own) for k in looks
    ]
    filmed = [FingerprintedClip(clip=f"real {k.subject.name}", owner="", own=k.own) for k in real]
    copies = find_copies_of_real_clips(find_near_copies([*entered, *filmed]), _OWNER)
    too_many = len(copies) > MOST_NEAR * len(looks)
    for copy in copies.values():
        refuses = copy.is_copy or too_many
        problem = (
            "a copy of a real clip: it was not generated. Submit generated clips"
            if refuses
            else f"within {NEAR_BITS} bits of a real clip, nearly a copy of it"
        )
        name = f"{copy.clip.removeprefix('entry ')} of {copy.of.removeprefix('real ')}"
        weight = EntryFindingSeverity.REFUSES if refuses else EntryFindingSeverity.WARNS
        yield EntryFinding(check="copies", weight=weight, words=problem, clips=(name,))
