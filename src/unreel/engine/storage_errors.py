"""Translation of object store errors to messages: the client's errors have no common base class."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError

from unreel.core.errors import GO_ON, MachineError, UnreadableSourceError, format_library_error

_REMEDY: Final = f"Check that it runs, its keys and this machine's clock. {GO_ON}"


@contextmanager
def translate_store_errors() -> Iterator[None]:
    """Let a store's error out as one of ours.

    Raises:
        UnreadableSourceError: A store did not do what it was asked.
    """
    try:
        yield
    except BaseError as error:
        source = "the store"
        raise UnreadableSourceError(source, format_library_error(error), _REMEDY) from error


def raise_away(error: BaseError, uri: str) -> None:
    """Raise where the store itself is at fault: the other objects of a job would fare no better.

    Raises:
        MachineError: The store did not answer, or not to the end, as often as it was asked.
    """
    if not isinstance(error, PermissionDeniedError | UnauthenticatedError):
        problem = f"cannot read {uri}: {format_library_error(error)}"
        raise MachineError(problem, _REMEDY) from error
