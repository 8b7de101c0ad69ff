"""Migrate a ledger of an earlier release to this release with Alembic."""
