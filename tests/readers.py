"""Readers of tables for tests: importable, because tables are read in a process of its own."""

import os


def end_process(*_: object) -> None:
    """End this process, as Lance can at a damaged file."""
    os.abort()
