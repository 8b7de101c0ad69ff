"""Our Dawid-Skene is crowd-kit's where no prior is asked for."""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from unreel.stats.dawid_skene import dawid_skene

DATA = Path(__file__).parent / "data"
KEPT = json.loads((DATA / "crowd_kit.json").read_text())
CASES = pytest.mark.parametrize("name", sorted(KEPT))
COLUMNS = ("annotator", "task", "label")


def _maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_crowd_kit", DATA / "make_crowd_kit.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@CASES
def test_the_chances_are_those_that_crowd_kit_gave(name: str) -> None:
    case = KEPT[name]
    found = dawid_skene(*(case[column] for column in COLUMNS), pull=0, max_rounds=3_000)
    assert found.has_converged
    assert np.abs(found.posterior - np.array(case["chances"])).max() < 2e-4


@CASES
def test_the_kept_labels_are_those_that_the_script_draws(name: str) -> None:
    maker = _maker()
    drawn = maker.draw(*maker.CASES[name])
    assert drawn == {column: KEPT[name][column] for column in COLUMNS}


@pytest.mark.parametrize(
    "name",
    [
        "pairs of labels",
        *(pytest.param(n, marks=pytest.mark.slow) for n in KEPT if " of " not in n),
    ],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of its own ways with pandas
def test_crowd_kit_gives_what_was_kept(name: str) -> None:
    pytest.importorskip("crowdkit", reason="its packages have an environment of their own")
    assert "crowdkit" in sys.modules
    maker = _maker()
    found = np.array(maker.fit(maker.draw(*maker.CASES[name])))
    assert np.abs(found - np.array(KEPT[name]["chances"])).max() < 1e-6
