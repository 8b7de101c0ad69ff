"""Names that people can choose from, loaded when asked."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from unreel.core.errors import MissingExtraError, UnknownNameError


@dataclass(frozen=True, slots=True)
class Lazy:
    """Where an object lives (`module:name`) and which extra it needs."""

    target: str
    extra: str | None = None

    def load(self) -> Any:
        """Import and return the object, or say which extra brings it."""
        module, _, name = self.target.partition(":")
        try:
            return getattr(import_module(module), name)
        except ModuleNotFoundError as error:
            missing = error.name or module
            if self.extra is None or missing.partition(".")[0] == "unreel":
                raise  # Our own mistake: show it as it is.
            raise MissingExtraError(missing, self.extra) from error


@dataclass(frozen=True, slots=True)
class Registry:
    """One table of names; an unknown name lists the known ones."""

    kind: str
    entries: Mapping[str, Lazy]

    def names(self) -> list[str]:
        """All names, sorted."""
        return sorted(self.entries)

    def load(self, name: str) -> Any:
        """The object behind `name`."""
        if name not in self.entries:
            raise UnknownNameError(self.kind, name, self.names())
        return self.entries[name].load()
