"""Copies of an entry's clips, so that the clips that take part are the clips that were checked."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from unreel.arena.run.make_clips import SeasonCreatorContext
from unreel.arena.season.folder import BENCH
from unreel.arena.season.scenes import build_name_only_brief
from unreel.arena.submission.clip_inspection import ClipToInspect
from unreel.arena.submission.entry import EntryFinding, EntryFindingSeverity
from unreel.core.content_ids import digest
from unreel.core.failure import Failure
from unreel.core.output_files import OutputDirectory
from unreel.creators.config import CreatorFactory
from unreel.creators.contract import ClipBrief, Creator, CreatorInput, GeneratedClip
from unreel.creators.folder import ENDINGS
from unreel.engine.storage_access import ClipAccessSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedEntryClips:
    """Copied clips of an entry, and problems of clips that could not be copied."""

    subjects: tuple[ClipToInspect, ...]
    findings: tuple[EntryFinding, ...]


def copy_entry_clips(
    factory: CreatorFactory,
    scenes: Mapping[str, str],
    *,
    into: Path,
    root: Path,
    access: ClipAccessSettings,
) -> CopiedEntryClips:
    """Copy the entry's clip of each scene and setting into `into`, named as a folder creator expects.

    Args:
        factory: Factory of the entry's creator.
        scenes: File name of each scene, without extension.
        into: Target folder of the copies.
        root: Folder of the season, for temporary files.
        access: Storage access.
    """
    return asyncio.run(
        _copy_entry_clips_async(factory, scenes, into=into, root=root, access=access)
    )


async def _copy_entry_clips_async(
    factory: CreatorFactory,
    scenes: Mapping[str, str],
    *,
    into: Path,
    root: Path,
    access: ClipAccessSettings,
) -> CopiedEntryClips:
    creator = factory.open()
    subjects: list[ClipToInspect] = []
    findings: list[EntryFinding] = []
    try:
        for scene, stem in scenes.items():
            for setting in factory.settings:
                key = digest("entry", str(into), scene, setting.value)
                context = SeasonCreatorContext(root=root, key=key, access=access)
                result = await _copy_scene_clip(
                    creator,
                    build_name_only_brief(scene, stem, setting),
                    context,
                    OutputDirectory(into),
                )
                if isinstance(result, ClipToInspect):
                    subjects.append(result)
                else:
                    findings.append(result)
    finally:
        await creator.close()
    return CopiedEntryClips(subjects=tuple(subjects), findings=tuple(findings))


async def _copy_scene_clip(
    creator: Creator, brief: ClipBrief, context: SeasonCreatorContext, into: OutputDirectory
) -> ClipToInspect | EntryFinding:
    clip = await creator.make(brief, context)
    name = f"{brief.id}-{brief.setting.value}"
    try:
        if isinstance(clip, Failure):
            problem = "every scene of the season has one clip. Add it, or name it after its scene"
            label = f"{name}: {clip.detail}"
            return EntryFinding(
                check="ids", weight=EntryFindingSeverity.REFUSES, words=problem, clips=(label,)
            )
        return _store_collected_clip(clip, name, brief.id, into)
    finally:
        OutputDirectory(context.root).remove_folder(f"{BENCH}/{context.key}")


def _store_collected_clip(
    clip: GeneratedClip, name: str, scene: str, into: OutputDirectory
) -> ClipToInspect:
    file_name = f"{name}{clip.file.suffix}"
    into.copy(clip.file, file_name)
    return ClipToInspect(name=name, scene=scene, file=into.root / file_name)


def iter_unmatched_clip_names(
    folder: Path, scenes: Mapping[str, str], settings: Sequence[CreatorInput]
) -> Iterator[str]:
    """Yield the file names of videos in `folder` that match no scene of the season."""
    names = {*scenes, *scenes.values()}
    known = {*names, *(f"{name}-{setting.value}" for name in names for setting in settings)}
    for name in OutputDirectory(folder).files():
        stem, dot, ending = name.rpartition(".")
        if f"{dot}{ending.lower()}" in ENDINGS and stem not in known:
            yield name
