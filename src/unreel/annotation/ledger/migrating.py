"""Brings a ledger's tables to this release, once, however many processes open it at the same time."""

import threading
from pathlib import Path
from typing import Final

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, text

from unreel.annotation.ledger.tables import READING, VERSION
from unreel.core.errors import UnreadableSourceError

_SCRIPTS: Final = Path(__file__).parent / "migrations"
_LOCK: Final = 0x756E7265656C01
"""Of PostgreSQL's advisory locks: nobody else's, and the same in every release."""

_one_thread = threading.Lock()
"""What Alembic runs finds its connection through a name of the whole process."""


def migrate(engine: Engine, shown: str) -> None:
    """Make the ledger's tables what this release uses.

    Raises:
        UnreadableSourceError: A newer release made them.
    """
    config = Config()
    config.set_main_option("script_location", str(_SCRIPTS).replace("%", "%%"))
    scripts = ScriptDirectory.from_config(config)
    with engine.connect() as plain:
        connection = plain.execution_options(**{READING: True})
        if _revision(connection, scripts, shown) == scripts.get_current_head():
            return
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
        config.attributes["connection"] = connection
        with _one_thread:
            command.upgrade(config, "head")


def _revision(connection: Connection, scripts: ScriptDirectory, shown: str) -> str | None:
    context = MigrationContext.configure(connection, opts={"version_table": VERSION})
    revision = context.get_current_revision()
    known = {script.revision for script in scripts.walk_revisions()}
    if revision is not None and revision not in known:
        problem = f"a newer unreel made it (revision {revision})"
        raise UnreadableSourceError(shown, problem, "Install that release: pip install -U unreel")
    return revision
