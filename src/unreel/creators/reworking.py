"""Creators that change the real clip of a scene: they open it with a reader of their own."""

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from unreel.core.failure import Failure, FailureReason
from unreel.creators.contract import Brief, Made, Setting, Side, Workplace
from unreel.creators.kind import Surroundings
from unreel.media.access import media_reader
from unreel.media.reader import MediaReader


@dataclass(frozen=True, slots=True, kw_only=True)
class Rework:
    """One clip to be changed."""

    brief: Brief
    source: Path
    into: Path
    """The file to write."""
    reader: MediaReader


class ReworkingCreator:
    """Changes real clips, one by one: the same seed gives the same bytes."""

    settings: ClassVar[frozenset[Setting]] = frozenset(Setting)

    def __init__(
        self,
        name: str,
        change: Callable[[Rework], Made | Failure],
        *,
        side: Side,
        around: Surroundings,
    ) -> None:
        self.name = name
        self.side = side
        self._change = change
        self._open = ExitStack()
        self._reader = self._open.enter_context(
            media_reader(around.settings, trusted=around.trusted)
        )

    async def make(self, brief: Brief, workplace: Workplace) -> Made | Failure:
        """The changed clip."""
        if brief.source is None:
            return Failure(FailureReason.NO_BRIEF, f"the scene {brief.id!a} has no real clip")
        rework = Rework(
            brief=brief,
            source=brief.source,
            into=workplace.folder / "clip.mp4",
            reader=self._reader,
        )
        return await asyncio.to_thread(self._change, rework)

    async def close(self) -> None:
        """Let go of the reader's processes."""
        self._open.close()
