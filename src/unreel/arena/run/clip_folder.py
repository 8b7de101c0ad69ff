"""Working folder of one clip, with notes that survive kill -9."""

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from unreel.arena.season.folder import BENCH, NOTES
from unreel.core.errors import InvalidValueError, MediaError
from unreel.core.failure import Failure, FailureReason
from unreel.core.output_files import OutputDirectory
from unreel.core.small_documents import parse_object
from unreel.engine.allowed_locations import require_named
from unreel.engine.downloads import fetch, fetch_public
from unreel.engine.storage_access import StorageAccess

_NOTES: Final = "notes.json"
_MOST_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskWorkplace:
    """The workplace of one clip below a season's folder."""

    root: Path
    key: str
    """Of the clip's row."""
    access: StorageAccess

    @property
    def folder(self) -> Path:
        """Return the working directory of this brief; create it if missing."""
        return OutputDirectory(self.root).make(f"{BENCH}/{self.key}")

    def recall(self, what: str) -> str | None:
        """Return the value noted under that key, in this or an earlier process."""
        return self._noted().get(what)

    def note(self, what: str, text: str) -> None:
        """Keep it, on disk before this returns."""
        folder = f"{NOTES}/{self.key}"
        data = json.dumps(self._noted() | {what: text}, ensure_ascii=True)
        files = OutputDirectory(self.root)
        files.write(f"{folder}/{_NOTES}", data.encode())
        files.settle(folder)

    async def fetch(self, url: str, into: Path) -> Failure | None:
        """Copy what a stranger's address holds into a file of the workplace's folder."""
        return await asyncio.to_thread(self._fetch, url, into)

    def _fetch(self, url: str, into: Path) -> Failure | None:
        try:
            name = into.relative_to(self.folder).as_posix()
            with OutputDirectory(self.folder).create(name) as file:
                self._copy(url, file)
        except MediaError as error:
            return error.failure
        except ValueError:
            return Failure(FailureReason.NOT_A_FILE, "its target is outside the workplace")
        return None

    def _copy(self, url: str, file: IO[bytes]) -> None:
        """Download `url` into `file`.

        An address that the user allowed is fetched with the user's storage settings, any other address
        only from the public internet.
        """
        reach = self.access.reach
        try:
            require_named(url, reach.named)
        except InvalidValueError:
            fetch_public(url, file, max_bytes=reach.max_bytes, seconds=reach.seconds)
        else:
            fetch(url, file, reach=reach, storage=self.access.storage)

    def _noted(self) -> dict[str, str]:
        try:
            with OutputDirectory(self.root).read(f"{NOTES}/{self.key}/{_NOTES}") as file:
                found = parse_object(file.read(_MOST_BYTES))
        except (FileNotFoundError, InvalidValueError):
            return {}
        return {word: told for word, told in found.items() if isinstance(told, str)}
