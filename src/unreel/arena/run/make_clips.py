"""The stage that lets a creator make one clip: briefed, remembered, looked at before it is believed."""

import asyncio
import json
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from unreel.arena.run.clip_folder import DiskWorkplace
from unreel.arena.season.briefs import build_brief
from unreel.arena.season.folder import BENCH, MADE_FOLDER, creator_folder
from unreel.core.errors import raise_refusal
from unreel.core.facts import ClipFacts
from unreel.core.failure import Failure, FailureReason
from unreel.core.identity import clip_id
from unreel.core.names import plain_suffix
from unreel.core.output_files import OutputDirectory
from unreel.creators.config import CreatorFactory
from unreel.creators.contract import ClipBrief, GeneratedClip
from unreel.engine.media_stage import MediaStage
from unreel.engine.stage import Row, WorkerResources, to_failed_row
from unreel.engine.storage_access import StorageAccess, local_copy
from unreel.engine.survey import FACTS

_MADE: Final = "made"
"""The word under which a finished clip is noted, so that a kill before its row costs nothing again."""
_SUFFIX: Final = ".mp4"


@dataclass(slots=True)
class RemainingBudget:
    """Remaining budget; unlimited if `left_usd` is `None`."""

    left_usd: Decimal | None = None

    @property
    def is_empty(self) -> bool:
        """Return whether the budget is spent."""
        return self.left_usd is not None and self.left_usd <= 0

    def pay(self, cost_usd: Decimal | None) -> None:
        """Subtract the reported cost of a clip; do nothing without a budget or a reported cost."""
        if self.left_usd is not None and cost_usd is not None:
            self.left_usd -= cost_usd


class MakeStage(MediaStage):
    """Stage that sends a row's brief to the creator and stores the clip in the season's directory.

    Args:
        opener: factory of the creator, called once in each worker.
        access: storage access for opening clips.
        folder: directory of the season.
        left_usd: remaining budget.
    """

    opened = MediaStage.opened | {"_creator"}

    def __init__(
        self,
        opener: CreatorFactory,
        access: StorageAccess,
        *,
        folder: Path,
        left_usd: Decimal | None,
    ) -> None:
        super().__init__(access, WorkerResources(in_flight=max(1, opener.at_once)))
        self._opener = opener
        self._root = folder
        self._purse = RemainingBudget(left_usd)

    def setup(self) -> None:
        super().setup()
        self._creator = self._opener.open()

    async def __call__(self, row: Row) -> Row:
        workplace = DiskWorkplace(root=self._root, key=row["key"], access=self._access)
        if (kept := await asyncio.to_thread(self._find_made, row, workplace)) is not None:
            return kept
        if self._purse.is_empty:
            detail = "the season's budget is spent: the creator was not asked"
            return to_failed_row(row, Failure(FailureReason.BUDGET_SPENT, detail))
        with self._real_clip(row) as file:
            brief = await asyncio.to_thread(
                build_brief, row, file, self._reader, self._opener.given
            )
            began_ns = time.monotonic_ns()
            made = brief if isinstance(brief, Failure) else await self._make(brief, workplace)
        if isinstance(made, Failure):
            return to_failed_row(row, made)
        self._purse.pay(made.cost_usd)
        took_us = (time.monotonic_ns() - began_ns) // 1000
        taken = await asyncio.to_thread(self._take, row, made, workplace, took_us)
        return to_failed_row(row, taken) if isinstance(taken, Failure) else taken

    async def close(self) -> None:
        await self._creator.close()
        super().close()

    async def _make(self, brief: ClipBrief, workplace: DiskWorkplace) -> GeneratedClip | Failure:
        try:
            made: object = await self._creator.make(brief, workplace)
        except Exception as error:  # noqa: BLE001  somebody's mistake costs one clip
            raise_refusal(error)
            return Failure(FailureReason.STAGE_FAILED, f"{type(error).__name__}: {error}")
        if not isinstance(made, GeneratedClip | Failure):
            detail = f"make gave {type(made).__name__}, and not a Made or a Failure"
            return Failure(FailureReason.MALFORMED_REPLY, detail)
        return made

    def _real_clip(self, row: Row) -> AbstractContextManager[Path | None]:
        location = row.get("_location")
        return nullcontext(None) if location is None else local_copy(location, self._access)

    def _take(
        self, row: Row, made: GeneratedClip, workplace: DiskWorkplace, took_us: int
    ) -> Row | Failure:
        """Check the clip, move it into the season's directory and return it as a row.

        The working directory of the clip is deleted.
        """
        files, bench = OutputDirectory(self._root), f"{BENCH}/{row['key']}"
        facts = self._look_at(made.file, workplace.folder)
        if isinstance(facts, Failure):
            files.remove_folder(bench)
            return facts
        name = self._name(row, made.file)
        if not files.hard_link(made.file.resolve(), name):
            files.copy(made.file, name)
        told = {
            "model": made.model,
            "parameters": json.dumps(dict(made.parameters), sort_keys=True),
            "traces": made.traces,
            "cost_usd": None if made.cost_usd is None else float(made.cost_usd),
            "took_us": took_us,
            "sha256": clip_id(self._root / name),
            "size_bytes": files.size(name),
            "facts": FACTS.dump_json(facts).decode(),
            "file": name,
        }
        workplace.note(_MADE, json.dumps(told))
        files.remove_folder(bench)
        return row | told

    def _find_made(self, row: Row, workplace: DiskWorkplace) -> Row | None:
        """Return the clip that an earlier process made but did not record."""
        noted = workplace.recall(_MADE)
        if noted is None or row["attempt"] > 1:
            return None
        told: dict[str, Any] = json.loads(noted)
        file = self._root / told["file"]
        return row | told if file.is_file() and clip_id(file) == told["sha256"] else None

    def _look_at(self, file: Path, bench: Path) -> ClipFacts | Failure:
        """Return the properties of an untrusted file.

        Two frames are decoded too, because a header can be wrong.
        """
        inside = file.resolve().is_relative_to(bench.resolve())
        if file.is_symlink() or not file.is_file() or not inside:
            return Failure(FailureReason.NOT_A_FILE, "the creator left no file in its workplace")
        size, most = file.stat().st_size, self._access.settings.fetch_mb << 20
        if size > most:
            return Failure(FailureReason.TOO_LARGE, f"{size} bytes, and {most} at most")
        facts = self._reader.probe(file)
        if isinstance(facts, Failure):
            return facts
        frames = self._reader.frames(file, sampling="uniform-2", longest_side=64)
        return frames if isinstance(frames, Failure) else facts

    def _name(self, row: Row, file: Path) -> str:
        below = f"{MADE_FOLDER}/{creator_folder(row['creator'], row['name'])}"
        return f"{below}/{row['key'][:32]}{plain_suffix(file.name) or _SUFFIX}"
