"""Alembic environment: runs the migrations over the connection that `migrate_ledger` passes."""

from alembic import context

from unreel.annotation.ledger.tables import VERSION

context.configure(
    connection=context.config.attributes["connection"],
    version_table=VERSION,
    transactional_ddl=True,  # also on SQLite: `connection.py` begins its transactions
)
with context.begin_transaction():
    context.run_migrations()
