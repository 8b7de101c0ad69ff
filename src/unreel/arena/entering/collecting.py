"""The clips of an entry that lies in a folder: taken over as they are now, so that what is checked is what is played."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from unreel.arena.briefs import name_brief
from unreel.arena.entering.finding import Finding, Weight
from unreel.arena.entering.look import Subject
from unreel.arena.working_folder import BENCH
from unreel.arena.workplace import DiskWorkplace
from unreel.core.failure import Failure
from unreel.core.identity import digest
from unreel.core.writing import Folder
from unreel.creators.contract import Brief, Creator, Made, Setting
from unreel.creators.folder import ENDINGS
from unreel.creators.section import CreatorOpener
from unreel.engine.access import Access


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """Collected files, with missing and surplus ones."""

    subjects: tuple[Subject, ...]
    findings: tuple[Finding, ...]


def collect_clips(
    opener: CreatorOpener, scenes: Mapping[str, str], *, into: Path, root: Path, access: Access
) -> Collected:
    """Copy the clip of each scene and setting below `into`, in the names that a folder creator looks for.

    `scenes` holds the name of each scene's file.

    `root` is the season's folder, where the work is done.
    """
    return asyncio.run(_collect(opener, scenes, into=into, root=root, access=access))


async def _collect(
    opener: CreatorOpener, scenes: Mapping[str, str], *, into: Path, root: Path, access: Access
) -> Collected:
    creator = opener.open()
    subjects: list[Subject] = []
    findings: list[Finding] = []
    try:
        for scene, stem in scenes.items():
            for setting in opener.settings:
                key = digest("entry", str(into), scene, setting.value)
                place = DiskWorkplace(root=root, key=key, access=access)
                taken = await _take(creator, name_brief(scene, stem, setting), place, Folder(into))
                if isinstance(taken, Subject):
                    subjects.append(taken)
                else:
                    findings.append(taken)
    finally:
        await creator.close()
    return Collected(subjects=tuple(subjects), findings=tuple(findings))


async def _take(
    creator: Creator, brief: Brief, place: DiskWorkplace, into: Folder
) -> Subject | Finding:
    made = await creator.make(brief, place)
    name = f"{brief.id}-{brief.setting.value}"
    try:
        if isinstance(made, Failure):
            words = "every scene of the season has one clip. Add it, or name it after its scene"
            told = f"{name}: {made.detail}"
            return Finding(check="ids", weight=Weight.REFUSES, words=words, clips=(told,))
        return _keep(made, name, brief.id, into)
    finally:
        Folder(place.root).remove_folder(f"{BENCH}/{place.key}")


def _keep(made: Made, name: str, scene: str, into: Folder) -> Subject:
    kept = f"{name}{made.file.suffix}"
    into.copy(made.file, kept)
    return Subject(name=name, scene=scene, file=into.root / kept)


def unknown_clips(
    folder: Path, scenes: Mapping[str, str], settings: Sequence[Setting]
) -> Iterator[str]:
    """Clips in `folder` that no scene of the season asks for."""
    names = {*scenes, *scenes.values()}
    known = {*names, *(f"{name}-{each.value}" for name in names for each in settings)}
    for name in Folder(folder).files():
        stem, dot, ending = name.rpartition(".")
        if f"{dot}{ending.lower()}" in ENDINGS and stem not in known:
            yield name
