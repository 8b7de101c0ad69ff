"""Tables of the ledger's database, and translation of database errors to errors of unreel."""

import contextlib
from collections.abc import Iterator
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.exc import DataError, DBAPIError
from sqlalchemy.types import TypeEngine

from unreel.core.errors import (
    GO_ON,
    InvalidValueError,
    MachineError,
    UnreadableSourceError,
    format_library_error,
)

_NO_LEDGER = ("file is not a database", "malformed", "no such table", "no such column")
_NO_TABLE = {"UndefinedTable", "UndefinedColumn"}
_REMEDIES = {
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
"""Remedies, by a part of the error message of SQLite or PostgreSQL."""
_OUTSIDE = {"OperationalError", "InterfaceError", "InsufficientPrivilege", "ReadOnlySqlTransaction"}
"""Names of error classes that are caused by the database and not by the statement."""
_OTHERWISE = f"Start its server again, or see that it can be reached. {GO_ON}"


@contextlib.contextmanager
def translate_database_errors(name: str) -> Iterator[None]:
    """Convert database errors inside the `with` block to errors of unreel."""
    try:
        yield
    except (DataError, OverflowError, UnicodeEncodeError) as error:
        text = format_library_error(getattr(error, "orig", error))
        raise InvalidValueError(
            f"the ledger cannot keep this: {text}. Give numbers of 64 bits, and plain text"
        ) from error
    except DBAPIError as error:
        text = format_library_error(error.orig)
        if any(part in text for part in _NO_LEDGER) or _get_error_class_names(error) & _NO_TABLE:
            raise UnreadableSourceError(
                name, text, "Name the file or database of a ledger, or one that is empty"
            ) from error
        if not (error.connection_invalidated or _get_error_class_names(error) & _OUTSIDE):
            raise
        remedies = (remedy for part, remedy in _REMEDIES.items() if part in text)
        raise MachineError(f"the ledger {name}: {text}", next(remedies, _OTHERWISE)) from error


def _get_error_class_names(error: DBAPIError) -> set[str]:
    return {kind.__name__ for kind in type(error.orig).__mro__}


VERSION = "ledger_version"
"""Name of the table in which Alembic stores the schema revision of the ledger."""
READING = "unreel_reading"
"""Execution option of read-only transactions, which never wait for a writer."""
TABLES = MetaData()
_SEQUENCE = BigInteger().with_variant(Integer, "sqlite")


def _build_campaign_column(*, primary_key: bool = False) -> Column[str]:
    name = ForeignKey("ledger_campaigns.name")
    return Column("campaign", Text, name, primary_key=primary_key, nullable=False)


def _build_not_null_column(name: str, kind: type[TypeEngine[Any]] = Text) -> Column[Any]:
    return Column(name, kind, nullable=False)


annotators = Table(
    "ledger_annotators",
    TABLES,
    Column("name", Text, primary_key=True),
    _build_not_null_column("email"),
    Column("login", Text, nullable=False, unique=True),
)
"""Table of annotators; `login` is the e-mail address in lower case, which identifies a person."""
campaigns = Table(
    "ledger_campaigns",
    TABLES,
    Column("name", Text, primary_key=True),
    _build_not_null_column("interface"),
    _build_not_null_column("benchmark"),
    _build_not_null_column("overlap", Integer),
    _build_not_null_column("seed", BigInteger),
)
revisions = Table(
    "ledger_revisions",
    TABLES,
    _build_campaign_column(primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    _build_not_null_column("guidelines"),
    _build_not_null_column("interface_version"),
)
memories = Table(
    "ledger_memories",
    TABLES,
    _build_campaign_column(primary_key=True),
    Column("kind", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    _build_not_null_column("value"),
)
tasks = Table(
    "ledger_tasks",
    TABLES,
    Column("seq", _SEQUENCE, primary_key=True),
    _build_campaign_column(),
    _build_not_null_column("id"),
    _build_not_null_column("body"),
    UniqueConstraint("campaign", "id"),
    Index("ledger_tasks_in_order", "campaign", "seq"),
)
assignments = Table(
    "ledger_assignments",
    TABLES,
    Column("campaign", Text, primary_key=True),
    Column("annotator", Text, ForeignKey("ledger_annotators.name"), primary_key=True),
    Column("task", Text, primary_key=True),
    _build_not_null_column("batch", Integer),
    _build_not_null_column("position", Integer),
    _build_not_null_column("arm"),
    _build_not_null_column("swapped", Boolean),
    ForeignKeyConstraint(["campaign", "task"], ["ledger_tasks.campaign", "ledger_tasks.id"]),
    UniqueConstraint("campaign", "annotator", "batch", "position"),
)
annotations = Table(
    "ledger_annotations",
    TABLES,
    Column("seq", _SEQUENCE, primary_key=True),
    Column("key", Text, nullable=False, unique=True),
    _build_campaign_column(),
    _build_not_null_column("annotator"),
    _build_not_null_column("task"),
    _build_not_null_column("origin"),
    _build_not_null_column("guidelines_version"),
    _build_not_null_column("interface_version"),
    _build_not_null_column("submitted_us", BigInteger),
    Column("lead_us", BigInteger),
    _build_not_null_column("raw"),
    _build_not_null_column("outcome"),
    Index("ledger_annotations_in_order", "campaign", "seq"),
)
"""Table of records; annotator and task may be unknown, as foreign submissions are stored as quarantined."""
notices = Table(
    "ledger_notices",
    TABLES,
    Column("seq", _SEQUENCE, primary_key=True),
    Column("key", Text, nullable=False, unique=True),
    _build_campaign_column(),
    _build_not_null_column("kind"),
    _build_not_null_column("subject"),
    _build_not_null_column("by"),
    _build_not_null_column("said"),
    _build_not_null_column("at_us", BigInteger),
)
