"""What every test of a statistic needs."""

from collections.abc import Callable

import numpy as np
import pytest

from unreel.core.estimate import Estimate, Measured

Estimated = Callable[[Measured], Estimate]


@pytest.fixture
def rng() -> np.random.Generator:
    """Numbers that are the same in every run."""
    return np.random.default_rng(20260419)


@pytest.fixture(scope="session")
def estimated() -> Estimated:
    """Passes an estimate on, and fails with the reason where there is none."""

    def expect(measured: Measured) -> Estimate:
        assert isinstance(measured, Estimate), str(measured)
        return measured

    return expect
