"""A curation meets the same faults: it ends in words, and the next call freezes the same benchmark."""

import json
import signal
import sys
from pathlib import Path

import pytest

from reliability.disk import fill
from reliability.trial import Trial, wait_until
from unreel.curation.step_execution import FINDINGS
from unreel.engine.location import StorageLocation
from unreel.engine.table import LanceTable

RECIPE = """
name = "small"
[source]
path = "{clips}"
licence = "CC0"
[normalise]
width = 64
height = 64
rate = 12
[freeze]
version = "1.0"
labels = []
"""


@pytest.fixture
def recipe(bench: Path, tmp_path: Path) -> Path:
    file = tmp_path / "recipe.toml"
    file.write_text(RECIPE.format(clips=bench))
    return file


def command(recipe: Path, out: Path) -> list[str]:
    code = "from unreel.cli.main import main; main()"
    return [sys.executable, "-c", code, "curate", "run", str(recipe), "--out", str(out), "--json"]


@pytest.mark.slow
def test_a_curation_goes_on_after_a_signal_and_a_full_disk(
    trial: Trial, recipe: Path, disk: Path, tmp_path: Path
) -> None:
    whole = trial.run(command=command(recipe, tmp_path / "whole"))
    assert whole.status == 0, whole.stderr

    started = trial.start(command=command(recipe, disk / "out"))
    ingested = LanceTable(StorageLocation(str(disk / "out" / "steps" / "ingest.lance")), FINDINGS)
    wait_until(lambda: ingested.count() > 0, started)
    started.process.send_signal(signal.SIGTERM)
    ended = started.end()
    assert ended.status == 128 + signal.SIGTERM
    assert "Run the same command again" in ended.stderr

    ballast = fill(disk)
    full = trial.run(command=command(recipe, disk / "out"))
    assert full.status == 2
    assert "Make room" in full.stderr
    ballast.unlink()
    again = trial.run(command=command(recipe, disk / "out"))
    assert again.status == 0, again.stderr
    frozen = [json.loads(one.stdout)["frozen"]["digest"] for one in (whole, again)]
    assert frozen[0] == frozen[1]
