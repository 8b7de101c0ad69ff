"""The clips of an entry that lies in a folder: taken over as they are now, so that what is checked is what is played."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

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

_ANY_LENGTH_US: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """Collected files, with missing and surplus ones."""

    subjects: tuple[Subject, ...]
    findings: tuple[Finding, ...]


def collect_clips(
    opener: CreatorOpener, scenes: Sequence[str], *, into: Path, root: Path, access: Access
) -> Collected:
    """Copy the clip of each scene and setting below `into`, in the names that a folder creator looks for.

    `root` is the season's folder, where the work is done.
    """
    return asyncio.run(_collect(opener, scenes, into=into, root=root, access=access))


async def _collect(
    opener: CreatorOpener, scenes: Sequence[str], *, into: Path, root: Path, access: Access
) -> Collected:
    creator = opener.open()
    subjects: list[Subject] = []
    findings: list[Finding] = []
    try:
        for scene in scenes:
            for setting in opener.settings:
                key = digest("entry", str(into), scene, setting.value)
                place = DiskWorkplace(root=root, key=key, access=access)
                taken = await _take(creator, _brief(scene, setting), place, Folder(into))
                if isinstance(taken, Subject):
                    subjects.append(taken)
                else:
                    findings.append(taken)
    finally:
        await creator.close()
    return Collected(subjects=tuple(subjects), findings=tuple(findings))


def _brief(scene: str, setting: Setting) -> Brief:
    return Brief(id=scene, setting=setting, width=1, height=1, duration_us=_ANY_LENGTH_US, seed=0)


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
    folder: Path, scenes: Mapping[str, object], settings: Sequence[Setting]
) -> Iterator[str]:
    """Clips in `folder` that no scene of the season asks for."""
    known = {*scenes, *(f"{scene}-{each.value}" for scene in scenes for each in settings)}
    for name in Folder(folder).files():
        stem, dot, ending = name.rpartition(".")
        if f"{dot}{ending.lower()}" in ENDINGS and stem not in known:
            yield name
