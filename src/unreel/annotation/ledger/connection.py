"""Connection to a ledger by its URL: a PostgreSQL database, or an SQLite file."""

import os
import threading
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError

from unreel.annotation.ledger.ledger import Ledger
from unreel.annotation.ledger.tables import READING, VERSION, translate_database_errors
from unreel.core.errors import InvalidSettingError, UnreadableSourceError
from unreel.core.output_files import OutputDirectory
from unreel.core.settings import EnvironmentSettings

_SCRIPTS = Path(__file__).parent / "migrations"
_LOCK = 0x756E7265656C01
"""Number of the PostgreSQL advisory lock for migrations, the same in every release."""

_one_thread = threading.Lock()
"""Lock for migrations: Alembic passes the connection to its scripts by a process-wide name."""


def migrate_ledger(engine: Engine, name: str) -> None:
    """Migrate the ledger's tables to the schema of this release."""
    config = Config()
    config.set_main_option("script_location", str(_SCRIPTS).replace("%", "%%"))
    scripts = ScriptDirectory.from_config(config)
    with engine.connect() as plain:
        connection = plain.execution_options(**{READING: True})
        context = MigrationContext.configure(connection, opts={"version_table": VERSION})
        revision = context.get_current_revision()
        known = {script.revision for script in scripts.walk_revisions()}
        if revision is not None and revision not in known:
            raise UnreadableSourceError(
                name,
                f"a newer unreel made it (revision {revision})",
                "Install that release: pip install -U unreel",
            )
        if revision == scripts.get_current_head():
            return
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
        config.attributes["connection"] = connection
        with _one_thread:
            command.upgrade(config, "head")


_WAIT_S = 30
"""Timeout in seconds of a writer that waits for another, and of PostgreSQL connections."""
_OPTION = "--ledger"
_ALMOST = ("postgres:", "postgresql:", "sqlite:")
"""Prefixes of a URL that lacks a slash; unlikely file names."""
_EXAMPLES = "Give postgresql://USER:PASSWORD@HOST/DATABASE, or the path of a file"


def resolve_ledger_url(url: str | None, settings: EnvironmentSettings) -> str:
    """Return the given URL or the setting `UNREEL_LEDGER`; raise `InvalidSettingError` if both are missing."""
    if address := url or settings.ledger:
        return address
    raise InvalidSettingError(
        _OPTION, "the location of the ledger is missing", f"{_EXAMPLES}; or set UNREEL_LEDGER"
    )


def open_ledger(address: str) -> Ledger:
    """Open the ledger at `address`; create it if missing, and migrate its tables to this release.

    Close it after use, or use it in a `with` statement.
    """
    url = _parse_database_url(address)
    is_file = url.get_backend_name() == "sqlite"
    bare = url.set(drivername="postgresql", query={})
    name = url.database or "" if is_file else bare.render_as_string(hide_password=True)
    engine = _open_sqlite_engine(url) if is_file else _open_postgresql_engine(url)
    try:
        with translate_database_errors(name):
            migrate_ledger(engine, name)
    except BaseException:
        engine.dispose()
        raise
    return Ledger(engine, name)


def _parse_database_url(address: str) -> URL:
    if "://" not in address and not address.startswith(_ALMOST):
        return URL.create("sqlite", database=address)
    if address.partition("?")[0].count("@") > 1:
        raise InvalidSettingError(
            _OPTION,
            "there are several @ in this address",
            "Write one that belongs to the password as %40, or put the password into ~/.pgpass",
        )
    try:
        url = make_url(address)
    except (ArgumentError, ValueError):
        raise InvalidSettingError(_OPTION, "must be the address of a database", _EXAMPLES) from None
    if url.drivername in {"postgresql", "postgres"}:
        return url.set(drivername="postgresql+psycopg")
    if url.drivername == "sqlite":
        return URL.create("sqlite", database=url.database)
    raise InvalidSettingError(_OPTION, f"cannot keep a ledger in {url.drivername!a}", _EXAMPLES)


def _open_sqlite_engine(url: URL) -> Engine:
    if not url.database or url.database == ":memory:":
        raise InvalidSettingError(
            _OPTION, "a ledger in memory would be lost with the command", _EXAMPLES
        )
    path = Path(url.database).resolve()
    if not path.exists():  # SQLite would create a file that all users can read
        os.close(OutputDirectory(path.parent).open(path.name, os.O_RDWR))
    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        hide_parameters=True,
        connect_args={"timeout": _WAIT_S},
    )
    event.listen(engine, "connect", _set_sqlite_pragmas)
    event.listen(engine, "begin", _begin_sqlite_transaction)
    return engine


def _open_postgresql_engine(url: URL) -> Engine:
    # Without these settings a lost server is detected only after hours.
    timeouts = {"connect_timeout": _WAIT_S, "keepalives_idle": _WAIT_S, "keepalives_count": 3}
    engine = create_engine(
        url,
        hide_parameters=True,
        pool_pre_ping=True,
        connect_args={name: value for name, value in timeouts.items() if name not in url.query},
    )
    event.listen(engine, "connect", _set_lock_timeout)
    return engine


def _set_lock_timeout(connection: Any, record: object) -> None:  # noqa: ARG001  SQLAlchemy's signature
    connection.execute(f"SET lock_timeout = '{_WAIT_S}s'")
    connection.commit()


def _set_sqlite_pragmas(connection: Any, record: object) -> None:  # noqa: ARG001  SQLAlchemy's signature
    connection.isolation_level = None  # otherwise the driver creates tables outside of transactions
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "trusted_schema=OFF"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite_transaction(connection: Connection) -> None:
    """Begin an SQLite transaction; a write transaction locks at once, as it could not wait after a read."""
    is_reading = connection.get_execution_options().get(READING, False)
    connection.exec_driver_sql("BEGIN" if is_reading else "BEGIN IMMEDIATE")
