"""Tables of this release; `migrations` creates the same tables, and a test compares the two."""

from typing import Any, Final

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
from sqlalchemy.types import TypeEngine

VERSION: Final = "ledger_version"
"""The table in which Alembic keeps how far a ledger has come."""
READING: Final = "unreel_reading"
"""Execution option of a transaction that writes nothing: readers never wait for a writer."""
TABLES: Final = MetaData()
_SEQUENCE: Final = BigInteger().with_variant(Integer, "sqlite")


def _build_campaign_column(*, primary_key: bool = False) -> Column[str]:
    name = ForeignKey("ledger_campaigns.name")
    return Column("campaign", Text, name, primary_key=primary_key, nullable=False)


def _build_required_column(name: str, kind: type[TypeEngine[Any]] = Text) -> Column[Any]:
    return Column(name, kind, nullable=False)


annotators: Final = Table(
    "ledger_annotators",
    TABLES,
    Column("name", Text, primary_key=True),
    _build_required_column("email"),
    Column("login", Text, nullable=False, unique=True),
)
"""`login` is the address in lower case: one login is one person."""
campaigns: Final = Table(
    "ledger_campaigns",
    TABLES,
    Column("name", Text, primary_key=True),
    _build_required_column("interface"),
    _build_required_column("benchmark"),
    _build_required_column("overlap", Integer),
    _build_required_column("seed", BigInteger),
)
revisions: Final = Table(
    "ledger_revisions",
    TABLES,
    _build_campaign_column(primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    _build_required_column("guidelines"),
    _build_required_column("interface_version"),
)
memories: Final = Table(
    "ledger_memories",
    TABLES,
    _build_campaign_column(primary_key=True),
    Column("kind", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    _build_required_column("value"),
)
tasks: Final = Table(
    "ledger_tasks",
    TABLES,
    Column("seq", _SEQUENCE, primary_key=True),
    _build_campaign_column(),
    _build_required_column("id"),
    _build_required_column("body"),
    UniqueConstraint("campaign", "id"),
    Index("ledger_tasks_in_order", "campaign", "seq"),
)
assignments: Final = Table(
    "ledger_assignments",
    TABLES,
    Column("campaign", Text, primary_key=True),
    Column("annotator", Text, ForeignKey("ledger_annotators.name"), primary_key=True),
    Column("task", Text, primary_key=True),
    _build_required_column("batch", Integer),
    _build_required_column("position", Integer),
    _build_required_column("arm"),
    _build_required_column("swapped", Boolean),
    ForeignKeyConstraint(["campaign", "task"], ["ledger_tasks.campaign", "ledger_tasks.id"]),
    UniqueConstraint("campaign", "annotator", "batch", "position"),
)
annotations: Final = Table(
    "ledger_annotations",
    TABLES,
    Column("seq", _SEQUENCE, primary_key=True),
    Column("key", Text, nullable=False, unique=True),
    _build_campaign_column(),
    _build_required_column("annotator"),
    _build_required_column("task"),
    _build_required_column("origin"),
    _build_required_column("guidelines_version"),
    _build_required_column("interface_version"),
    _build_required_column("submitted_us", BigInteger),
    Column("lead_us", BigInteger),
    _build_required_column("raw"),
    _build_required_column("outcome"),
    Index("ledger_annotations_in_order", "campaign", "seq"),
)
"""Neither annotator nor task must be known: what a stranger sent is kept too, as quarantined."""
notices: Final = Table(
    "ledger_notices",
    TABLES,
    Column("seq", _SEQUENCE, primary_key=True),
    Column("key", Text, nullable=False, unique=True),
    _build_campaign_column(),
    _build_required_column("kind"),
    _build_required_column("subject"),
    _build_required_column("by"),
    _build_required_column("said"),
    _build_required_column("at_us", BigInteger),
)
