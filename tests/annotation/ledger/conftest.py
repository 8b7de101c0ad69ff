"""A new ledger for each test, once on SQLite and once on PostgreSQL."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from campaigns import ANN, BEN, CAMPAIGN, CAT
from unreel.annotation.ledger.connection import open_ledger
from unreel.annotation.ledger.ledger import Ledger

_numbers = itertools.count()


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where an empty ledger can be."""
    if request.param == "sqlite":
        return str(tmp_path / "ledger.db")
    found: str = request.getfixturevalue("postgres").create_schema(f"ledger_{next(_numbers)}")
    return found


@pytest.fixture
def ledger(address: str) -> Iterator[Ledger]:
    """A ledger with three annotators and a campaign."""
    with open_ledger(address) as opened:
        opened.enlist([ANN, BEN, CAT])
        opened.open_campaign(CAMPAIGN)
        yield opened
