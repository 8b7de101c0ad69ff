"""Translate database errors into messages with advice."""

import contextlib
from collections.abc import Iterator
from typing import Final

from sqlalchemy.exc import DataError, DBAPIError

from unreel.core.errors import (
    GO_ON,
    InvalidValueError,
    MachineError,
    UnreadableSourceError,
    format_library_error,
)

_NO_LEDGER: Final = ("file is not a database", "malformed", "no such table", "no such column")
_NO_TABLE: Final = {"UndefinedTable", "UndefinedColumn"}
_REMEDIES: Final = {
    "lock timeout": f"Another process writes it: wait for its end. {GO_ON}",
    "locked": f"Another process writes it: wait for its end. {GO_ON}",
    "full": f"Make room. {GO_ON}",
    "No space": f"Make room. {GO_ON}",
    "readonly": f"Make it writable, or name another place. {GO_ON}",
    "read-only": f"Make it writable, or name another place. {GO_ON}",
    "disk I/O": "Name a plain file on a disk that works",
    "unable to open": "Make its folder, and make it writable, or name another place",
    "password": "Name the right user and password in the ledger's address, or put them into ~/.pgpass",
    "does not exist": "Make it, for example with `createdb`, or correct the ledger's address",
    "permission denied": "Let this user make tables there: GRANT ALL ON SCHEMA public TO the user",
    "too many": f"Let the server take more connections, or end others. {GO_ON}",
}
"""By words of the complaint, of SQLite and of PostgreSQL."""
_OUTSIDE: Final = {
    "OperationalError",
    "InterfaceError",
    "InsufficientPrivilege",
    "ReadOnlySqlTransaction",
}
"""Complaints for which the database is to blame rather than the statement."""
_OTHERWISE: Final = f"Start its server again, or see that it can be reached. {GO_ON}"


@contextlib.contextmanager
def translate_database_errors(shown: str) -> Iterator[None]:
    """Translate database errors to our errors; `shown` names the database without its password.

    Raises:
        MachineError: The database is lost, full, locked, or rejects this user.
        UnreadableSourceError: The file is not a database, or not that of a ledger.
        InvalidValueError: The database does not support a text or a number.
    """
    try:
        yield
    except (DataError, OverflowError, UnicodeEncodeError) as error:
        said = format_library_error(getattr(error, "orig", error))
        msg = f"the ledger cannot keep this: {said}. Give numbers of 64 bits, and plain text"
        raise InvalidValueError(msg) from error
    except DBAPIError as error:
        said = format_library_error(error.orig)
        if any(words in said for words in _NO_LEDGER) or _get_error_class_names(error) & _NO_TABLE:
            remedy = "Name the file or database of a ledger, or one that is empty"
            raise UnreadableSourceError(shown, said, remedy) from error
        if not (error.connection_invalidated or _get_error_class_names(error) & _OUTSIDE):
            raise
        found = (remedy for words, remedy in _REMEDIES.items() if words in said)
        problem = f"the ledger {shown}: {said}"
        raise MachineError(problem, next(found, _OTHERWISE)) from error


def _get_error_class_names(error: DBAPIError) -> set[str]:
    return {kind.__name__ for kind in type(error.orig).__mro__}
