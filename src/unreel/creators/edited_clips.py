"""Creators that change the real clip of a scene: they open it with a reader of their own."""

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from unreel.core.failure import Failure, FailureReason
from unreel.creators.contract import (
    ClipBrief,
    ClipClass,
    CreatorContext,
    CreatorInput,
    GeneratedClip,
)
from unreel.creators.kind import CreatorEnvironment
from unreel.media.access import media_reader
from unreel.media.reader import MediaReader


@dataclass(frozen=True, slots=True, kw_only=True)
class ReworkRequest:
    """One clip to be changed."""

    brief: ClipBrief
    source: Path
    into: Path
    """The file to write."""
    reader: MediaReader


class ReworkingCreator:
    """Changes real clips, one by one: the same seed gives the same bytes."""

    settings: ClassVar[frozenset[CreatorInput]] = frozenset(CreatorInput)

    def __init__(
        self,
        name: str,
        change: Callable[[ReworkRequest], GeneratedClip | Failure],
        *,
        side: ClipClass,
        around: CreatorEnvironment,
    ) -> None:
        self.name = name
        self.side = side
        self._change = change
        self._open = ExitStack()
        self._reader = self._open.enter_context(
            media_reader(around.settings, trusted=around.trusted)
        )

    async def make(self, brief: ClipBrief, workplace: CreatorContext) -> GeneratedClip | Failure:
        """Make the edited clip."""
        if brief.source is None:
            return Failure(FailureReason.NO_BRIEF, f"the scene {brief.id!a} has no real clip")
        rework = ReworkRequest(
            brief=brief,
            source=brief.source,
            into=workplace.folder / "clip.mp4",
            reader=self._reader,
        )
        return await asyncio.to_thread(self._change, rework)

    async def close(self) -> None:
        """Let go of the reader's processes."""
        self._open.close()
