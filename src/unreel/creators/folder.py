"""Creator for existing clips in a folder: one file for each scene, named after the scene."""

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import IO, Annotated, ClassVar

from pydantic import Field

from unreel.core.chunks import READ_BYTES
from unreel.core.errors import InvalidValueError, UnsafeTargetError, raise_if_machine_error
from unreel.core.failure import Failure, FailureReason
from unreel.core.output_files import OutputDirectory
from unreel.creators.contract import (
    ClipBrief,
    ClipClass,
    Creator,
    CreatorContext,
    CreatorEnvironment,
    CreatorInput,
    CreatorKeys,
    GeneratedClip,
    Given,
)
from unreel.recipes.validation import RecipeNumberUnit, Text

ENDINGS = (".mp4", ".mov", ".m4v", ".mkv", ".webm", ".avi", ".ts", ".gif")
"""Suffixes of files that may be a clip, in lower or upper case."""
_MEGABYTE = 1 << 20


class FolderCreatorConfig(CreatorKeys):
    """`kind = "folder"`: existing clips in a folder."""

    places: ClassVar[frozenset[str]] = frozenset({"folder"})
    besides: ClassVar[frozenset[str]] = frozenset({"cost_usd"})
    at_once: ClassVar[int] = 8

    folder: Text
    """Path of the folder of files `SCENE-SETTING.mp4`; also `SCENE.mp4` if at most one setting is requested."""
    model: Text = ""
    """Name and version of the model that made the clips; by default the creator's stable name."""
    version: Text = ""
    """Version of the clips: to be changed with them, because another version is another entrant."""
    cost_usd: Annotated[Decimal, Field(ge=0, le=10**6), RecipeNumberUnit("US dollars")] | None = (
        None
    )
    """Cost of one clip in USD."""

    @property
    def given(self) -> Given:
        return "name"

    def open(self, name: str, environment: CreatorEnvironment) -> Creator:
        return FolderCreator(
            name=name,
            keys=self,
            largest_bytes=environment.settings.fetch_mb * _MEGABYTE,
            plain_names=len(environment.inputs) <= 1,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderCreator:
    """Creator that returns files of a folder. Scene names are untrusted and cannot point outside the folder."""

    name: str
    keys: FolderCreatorConfig
    largest_bytes: int
    plain_names: bool = True
    """Whether a file name without the setting, such as `SCENE.mp4`, is accepted."""
    side: ClipClass = ClipClass.GENERATED
    settings: frozenset[CreatorInput] = frozenset(CreatorInput)

    async def make(self, brief: ClipBrief, context: CreatorContext) -> GeneratedClip | Failure:
        return await asyncio.to_thread(self._hand_over, brief, OutputDirectory(context.folder))

    async def close(self) -> None:
        """Do nothing: the creator has no open resources."""

    def _hand_over(self, brief: ClipBrief, directory: OutputDirectory) -> GeneratedClip | Failure:
        folder = OutputDirectory(Path(self.keys.folder))
        try:
            matches = list(self._find(brief, folder))
            if len(matches) != 1:
                if matches:
                    detail = f"{' and '.join(map(ascii, matches))} are all the clip of one scene"
                else:
                    expected = self._stems(replace(brief, id=brief.file_stem or brief.id))
                    names = " or ".join(ascii(f"{stem}.mp4") for stem in expected)
                    endings = ", ".join(ENDINGS[1:])
                    detail = f"no {names} in {Path(self.keys.folder).name!a}, nor with {endings}"
                return Failure(FailureReason.NOT_A_FILE, detail)
            if (folder.size(matches[0]) or 0) > self.largest_bytes:
                return self._too_large()
            name = f"clip{Path(matches[0]).suffix.lower()}"
            with folder.read(matches[0]) as source:
                if failure := self._copy(source, directory, name):
                    return failure
        except (InvalidValueError, UnsafeTargetError, OSError) as error:
            raise_if_machine_error(error)
            return Failure(FailureReason.NOT_A_FILE, f"{brief.id!a} names no clip ({error})")
        return GeneratedClip(
            file=directory.root / name,
            model=self.keys.model or self.name,
            parameters={"file": matches[0], "version": self.keys.version},
            cost_usd=self.keys.cost_usd,
        )

    def _copy(self, source: IO[bytes], directory: OutputDirectory, name: str) -> Failure | None:
        n_bytes = 0
        with directory.create(name) as file:
            while (block := source.read(READ_BYTES)) and n_bytes <= self.largest_bytes:
                n_bytes += len(block)
                file.write(block)
        if n_bytes <= self.largest_bytes:
            return None
        directory.remove(name)
        return self._too_large()

    def _too_large(self) -> Failure:
        detail = f"more than {self.largest_bytes // _MEGABYTE} MB in one file"
        return Failure(FailureReason.TOO_LARGE, detail)

    def _find(self, brief: ClipBrief, directory: OutputDirectory) -> Iterator[str]:
        for stem in self._stems(brief):
            for ending in ENDINGS:
                spelt = (stem + ending, stem + ending.upper())
                with suppress(InvalidValueError):  # the scene's name points outside the folder
                    yield from [name for name in spelt if directory.size(name) is not None][:1]

    def find_missing(self, briefs: Iterable[ClipBrief]) -> list[str]:
        """Return the names of the files that `briefs` require and that are not in the folder."""
        folder = OutputDirectory(Path(self.keys.folder))
        missing = []
        for brief in briefs:
            is_found = False
            with suppress(InvalidValueError, UnsafeTargetError, OSError):
                is_found = any(True for _ in self._find(brief, folder))
            if not is_found:
                name = brief.file_stem or brief.id
                name = name if self.plain_names else f"{name}-{brief.setting.value}"
                missing.append(f"{name}.mp4")
        return missing

    def _stems(self, brief: ClipBrief) -> tuple[str, ...]:
        """Return the possible file names of the brief's clip, without suffix: by file stem or scene id."""
        names = dict.fromkeys((brief.file_stem or brief.id, brief.id))
        owns = [f"{name}-{brief.setting.value}" for name in names]
        return (*owns, *names) if self.plain_names else tuple(owns)
