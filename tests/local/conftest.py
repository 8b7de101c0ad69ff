"""Tiny models of all families, written once."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tiny_models import write_tiny
from unreel.reviewers.local.checkpoint import FamilyName


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Callable[[FamilyName], Path]:
    """The folder of a tiny model of that family, untrained."""
    folder = tmp_path_factory.mktemp("tiny")

    def written(family: FamilyName) -> Path:
        if not (folder / family).exists():
            write_tiny(family, folder / family)
        return folder / family

    return written
