"""What an annotated copy costs: the benchmark in short, and in full where slow tests run."""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "annotated_copy.py"
Measure = Callable[..., dict[str, dict[str, Any]]]


@pytest.fixture
def measure() -> Measure:
    spec = importlib.util.spec_from_file_location("annotated_copy", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return lambda *words: script.main([str(word) for word in words])


@pytest.mark.slow
def test_memory_does_not_grow_with_the_clip(measure: Measure) -> None:
    small = ("--width", 192, "--height", 128, "--scene", "ball")
    short, long = (measure("--seconds", s, *small)["confined"] for s in (1, 20))
    assert long["cpu_s"] > short["cpu_s"]
    assert long["peak_mb"] - short["peak_mb"] < 8


@pytest.mark.slow
def test_a_minute_at_1080p_has_its_copy(measure: Measure) -> None:
    found = measure("--seconds", 60, "--scene", "ball")["confined"]
    assert found["cpu_s"] < 60 * 5
    assert found["peak_mb"] < 400
