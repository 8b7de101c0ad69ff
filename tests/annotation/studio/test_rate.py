"""Push and pull keep up with Label Studio's own bulk calls."""

import runpy
from pathlib import Path

import pytest

from studio import Studio
from unreel.annotation.ledger.connection import open_ledger
from unreel.annotation.studio.client import LabelStudioClient

pytestmark = [pytest.mark.xdist_group("studio"), pytest.mark.slow, pytest.mark.timeout(3600)]

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "studio_rate.py"


def test_five_thousand_tasks_are_pushed_and_pulled_at_four_fifths_of_the_bulk_calls_or_more(
    studio: Studio, tmp_path: Path
) -> None:
    measure = runpy.run_path(str(SCRIPT))["measure"]
    with (
        open_ledger(str(tmp_path / "ledger.db")) as ledger,
        LabelStudioClient(studio.connection) as client,
    ):
        figures = measure(client, ledger, studio.folder, n=5000)
    assert figures["push_ratio"] >= 0.8, figures
    assert figures["pull_ratio"] >= 0.8, figures
