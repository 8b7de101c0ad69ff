"""What a database complains of, told with what to do next."""

import contextlib
from collections.abc import Iterator
from typing import Final

from sqlalchemy.exc import DBAPIError, IntegrityError

from unreel.core.errors import GO_ON, MachineError, UnreadableSourceError, words_of

_NO_DATABASE: Final = ("file is not a database", "malformed")
_REMEDIES: Final = {
    "locked": f"Another process writes it: wait for its end. {GO_ON}",
    "full": f"Make room. {GO_ON}",
    "No space": f"Make room. {GO_ON}",
    "readonly": f"Make it writable, or name another place. {GO_ON}",
    "read-only": f"Make it writable, or name another place. {GO_ON}",
    "unable to open": "Make its folder, and make it writable, or name another place",
    "password": "Name the right user and password in the ledger's address, or put them into ~/.pgpass",
    "does not exist": "Make it, for example with `createdb`, or correct the ledger's address",
    "permission denied": "Let this user make tables there: GRANT ALL ON SCHEMA public TO the user",
    "too many": f"Let the server take more connections, or end others. {GO_ON}",
}
"""By words of the complaint, of SQLite and of PostgreSQL."""
_OTHERWISE: Final = f"Start its server again, or see that it can be reached. {GO_ON}"


@contextlib.contextmanager
def told_troubles(shown: str) -> Iterator[None]:
    """Raise what keeps a database from working in words; `shown` names it without its password.

    Raises:
        MachineError: The database is lost, full, locked, or refuses this user.
        UnreadableSourceError: The file is no database.
    """
    try:
        yield
    except IntegrityError:
        raise
    except DBAPIError as error:
        said = words_of(error.orig)
        if any(words in said for words in _NO_DATABASE):
            remedy = "Name the file of a ledger, or one that is not there yet"
            raise UnreadableSourceError(shown, said, remedy) from error
        if not _is_outside(error):
            raise
        found = (remedy for words, remedy in _REMEDIES.items() if words in said)
        problem = f"the ledger {shown}: {said}"
        raise MachineError(problem, next(found, _OTHERWISE)) from error


def _is_outside(error: DBAPIError) -> bool:
    """Whether the database is to blame rather than the statement."""
    kind = type(error.orig).__name__
    known = {
        "OperationalError",
        "InterfaceError",
        "InsufficientPrivilege",
        "ReadOnlySqlTransaction",
    }
    parents = {parent.__name__ for parent in type(error.orig).__mro__}
    return error.connection_invalidated or kind in known or bool(parents & known)
