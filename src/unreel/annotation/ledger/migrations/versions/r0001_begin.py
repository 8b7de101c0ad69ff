"""The first tables, and triggers that prevent changes of stored judgements."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_SEQUENCE = sa.BigInteger().with_variant(sa.Integer, "sqlite")
"""Type of the sequence numbers; SQLite autoincrements only columns of exactly this type."""
_LASTING = ("ledger_annotations", "ledger_notices", "ledger_revisions")
_KEYS = {
    "ledger_annotations": "key = NEW.key OR seq = NEW.seq",
    "ledger_notices": "key = NEW.key OR seq = NEW.seq",
    "ledger_revisions": "campaign = NEW.campaign AND number = NEW.number",
}
_REFUSAL = "the ledger is only added to: nothing that was said is changed or taken away"


def upgrade() -> None:
    """Create the ledger's tables, then the triggers that make them append-only."""
    _create_campaign_tables()
    _create_task_tables()
    _create_answer_tables()
    if op.get_bind().dialect.name == "postgresql":
        _create_postgresql_triggers()
    else:
        _create_sqlite_triggers()


def _create_campaign_tables() -> None:
    op.create_table(
        "ledger_annotators",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("email", sa.Text, nullable=False),
        sa.Column("login", sa.Text, nullable=False, unique=True),
    )
    op.create_table(
        "ledger_campaigns",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("interface", sa.Text, nullable=False),
        sa.Column("benchmark", sa.Text, nullable=False),
        sa.Column("overlap", sa.Integer, nullable=False),
        sa.Column("seed", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "ledger_revisions",
        sa.Column("campaign", sa.Text, sa.ForeignKey("ledger_campaigns.name"), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("guidelines", sa.Text, nullable=False),
        sa.Column("interface_version", sa.Text, nullable=False),
    )
    op.create_table(
        "ledger_memories",
        sa.Column("campaign", sa.Text, sa.ForeignKey("ledger_campaigns.name"), primary_key=True),
        sa.Column("kind", sa.Text, primary_key=True),
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("value", sa.Text, nullable=False),
    )


def _create_task_tables() -> None:
    op.create_table(
        "ledger_tasks",
        sa.Column("seq", _SEQUENCE, primary_key=True),
        sa.Column("campaign", sa.Text, sa.ForeignKey("ledger_campaigns.name"), nullable=False),
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.UniqueConstraint("campaign", "id"),
    )
    op.create_index("ledger_tasks_in_order", "ledger_tasks", ["campaign", "seq"])
    op.create_table(
        "ledger_assignments",
        sa.Column("campaign", sa.Text, primary_key=True),
        sa.Column("annotator", sa.Text, sa.ForeignKey("ledger_annotators.name"), primary_key=True),
        sa.Column("task", sa.Text, primary_key=True),
        sa.Column("batch", sa.Integer, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("arm", sa.Text, nullable=False),
        sa.Column("swapped", sa.Boolean, nullable=False),
        sa.ForeignKeyConstraint(["campaign", "task"], ["ledger_tasks.campaign", "ledger_tasks.id"]),
        sa.UniqueConstraint("campaign", "annotator", "batch", "position"),
    )


def _create_answer_tables() -> None:
    op.create_table(
        "ledger_annotations",
        sa.Column("seq", _SEQUENCE, primary_key=True),
        sa.Column("key", sa.Text, nullable=False, unique=True),
        sa.Column("campaign", sa.Text, sa.ForeignKey("ledger_campaigns.name"), nullable=False),
        sa.Column("annotator", sa.Text, nullable=False),
        sa.Column("task", sa.Text, nullable=False),
        sa.Column("origin", sa.Text, nullable=False),
        sa.Column("guidelines_version", sa.Text, nullable=False),
        sa.Column("interface_version", sa.Text, nullable=False),
        sa.Column("submitted_us", sa.BigInteger, nullable=False),
        sa.Column("lead_us", sa.BigInteger),
        sa.Column("raw", sa.Text, nullable=False),
        sa.Column("outcome", sa.Text, nullable=False),
    )
    op.create_index("ledger_annotations_in_order", "ledger_annotations", ["campaign", "seq"])
    op.create_table(
        "ledger_notices",
        sa.Column("seq", _SEQUENCE, primary_key=True),
        sa.Column("key", sa.Text, nullable=False, unique=True),
        sa.Column("campaign", sa.Text, sa.ForeignKey("ledger_campaigns.name"), nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("by", sa.Text, nullable=False),
        sa.Column("said", sa.Text, nullable=False),
        sa.Column("at_us", sa.BigInteger, nullable=False),
    )


def _create_postgresql_triggers() -> None:
    op.execute(
        "CREATE FUNCTION ledger_refuse() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION '{_REFUSAL}'; END $$"
    )
    for table in _LASTING:
        op.execute(
            f"CREATE TRIGGER {table}_stay BEFORE UPDATE OR DELETE ON {table} "
            "FOR EACH ROW EXECUTE FUNCTION ledger_refuse()"
        )
        op.execute(
            f"CREATE TRIGGER {table}_stay_all BEFORE TRUNCATE ON {table} "
            "FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse()"
        )


def _create_sqlite_triggers() -> None:
    for table, same in _KEYS.items():
        for event in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER {table}_stay_{event.lower()} BEFORE {event} ON {table} "
                f"BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END"
            )
        # INSERT OR REPLACE deletes a row without firing the DELETE trigger.
        op.execute(
            f"CREATE TRIGGER {table}_stay_insert BEFORE INSERT ON {table} "  # noqa: S608  names from above
            f"WHEN EXISTS (SELECT 1 FROM {table} WHERE {same}) BEGIN SELECT RAISE(IGNORE); END"
        )
