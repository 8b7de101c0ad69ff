"""Simulated people of known skill: 20 of them, 1,000 clips, 3 votes each, two spammers."""

import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from unreel.core.estimate import Estimate
from unreel.stats.bootstrap import bootstrap_mean

SEEDS = (1, 2, 3)


@cache
def _benchmark() -> ModuleType:
    path = Path(__file__).parents[3] / "benchmarks" / "consensus.py"
    spec = importlib.util.spec_from_file_location("consensus_benchmark", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look themselves up there
    spec.loader.exec_module(module)
    return module


@cache
def _finding(seed: int) -> Any:
    return _benchmark().run(_benchmark().suspicious_and_trusting(), seed)


@pytest.mark.parametrize("against", ["counted", "best"])
def test_weighed_votes_are_right_more_often_than_counted_ones_and_than_the_best_person(
    against: str,
) -> None:
    gains = [_finding(seed).right["weighed"] - _finding(seed).right[against] for seed in SEEDS]
    gain = bootstrap_mean(np.concatenate(gains), seed=1, bounds=(-1, 1))
    assert isinstance(gain, Estimate)
    assert gain.low > 0
    assert gain.value > 0.01


@pytest.mark.parametrize("seed", SEEDS)
def test_skills_are_recovered(seed: int) -> None:
    assert _finding(seed).skills > 0.9
