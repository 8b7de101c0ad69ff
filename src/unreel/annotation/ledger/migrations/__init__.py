"""Alembic migrations from the ledger schema of an earlier release to this release."""
