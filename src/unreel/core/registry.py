"""Registries of built-in names and names from other packages; objects are loaded on request."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from unreel.core.errors import InvalidSettingError, MissingExtraError, UnknownNameError

if TYPE_CHECKING:  # this import slows down the start, and few commands need it
    from importlib.metadata import EntryPoint

T = TypeVar("T")


@contextmanager
def needs_extra(extra: str) -> Iterator[None]:
    """Import modules of the optional `extra` in this block.

    Raises:
        MissingExtraError: A package of the extra is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "unreel":
            raise  # an error in unreel itself: raised unchanged
        raise MissingExtraError(error.name, extra) from error


@dataclass(frozen=True, slots=True)
class LazyImport:
    """Import path of an object (`module:name`), and the extra that it needs."""

    target: str
    extra: str | None = None

    def load(self) -> Any:
        """Import and return the object; raise `MissingExtraError` if a package of `extra` is not installed."""
        module, _, name = self.target.partition(":")
        if self.extra is None:
            return getattr(import_module(module), name)
        with needs_extra(self.extra):
            return getattr(import_module(module), name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Import the object, call it with the given arguments, and return the result."""
        return self.load()(*args, **kwargs)


def require_extra(modules: Sequence[str], extra: str) -> None:
    """Check that all packages of the optional `extra` are installed, without importing them.

    Raise `MissingExtraError` if one of `modules` is not installed.
    """
    for module in modules:
        if find_spec(module) is None:
            raise MissingExtraError(module, extra)


@dataclass(frozen=True)  # with slots, `Registry[T](...)` would fail
class NamedObjectRegistry(Generic[T]):
    """Registry of objects by name, loaded on request; an unknown name gives an error with all names.

    A package adds a name through an entry point of the `group`. It cannot replace a built-in name,
    because the meaning of built-in names must not depend on installed packages.
    """

    kind: str
    entries: Mapping[str, LazyImport]
    group: str | None = None

    def names(self) -> list[str]:
        """Return all names, sorted."""
        return sorted({*self.entries, *_read_entry_points(self.group)})

    def __contains__(self, name: str) -> bool:
        return name in self.entries or name in _read_entry_points(self.group)

    def load(self, name: str) -> T:
        """Load the object named `name`.

        Raise `UnknownNameError` if the name is unknown, or `MissingExtraError` if the object needs
        an extra that is not installed, or `InvalidSettingError` if the object belongs to another
        package and cannot be loaded.
        """
        if name in self.entries:
            return self.entries[name].load()  # type: ignore[no-any-return]
        points = _read_entry_points(self.group)
        if name not in points:
            raise UnknownNameError(self.kind, name, self.names())
        point = points[name]
        try:
            return point.load()  # type: ignore[no-any-return]
        except Exception as error:
            whose = "a package" if point.dist is None else point.dist.name
            raise InvalidSettingError(
                self.kind,
                f"the {self.kind} {point.name!r} of {whose} cannot be loaded ({error})",
                f"Fix {point.value}, or uninstall the package",
            ) from error


@cache
def _read_entry_points(group: str | None) -> "Mapping[str, EntryPoint]":
    if group is None:
        return {}
    from importlib.metadata import entry_points

    return {point.name: point for point in entry_points(group=group)}
