"""How a ledger of an earlier release becomes one of this release, run by Alembic."""
