"""Stages that open clips: each worker has one media reader."""

from contextlib import ExitStack
from typing import Any, ClassVar

from unreel.engine.stage import Stage, WorkerResources
from unreel.engine.storage_access import StorageAccess
from unreel.media.access import media_reader


class MediaStage(Stage):
    """A stage with a media reader from `setup` to `close`; it travels to workers without it."""

    opened: ClassVar[frozenset[str]] = frozenset({"_open", "_reader"})
    """What `setup` opens, by attribute; a subclass that opens more says so."""

    def __init__(self, access: StorageAccess, resources: WorkerResources) -> None:
        self.resources = resources
        self._access = access

    def setup(self) -> None:
        self._open = ExitStack()
        access = self._access
        self._reader = self._open.enter_context(
            media_reader(access.settings, trusted=access.trusted)
        )

    def close(self) -> Any:
        self._open.close()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in self.opened}
