"""Real parts for the engine's tests: a table on disk, one Ray for the session."""

from collections.abc import Iterator
from pathlib import Path

import pytest

lance = pytest.importorskip("lance", reason="needs the extra `eval`")

from unreel.asking.answer_table import ANSWERS  # noqa: E402
from unreel.engine.location import StorageLocation  # noqa: E402
from unreel.engine.table import LanceTable  # noqa: E402


@pytest.fixture
def table(tmp_path: Path) -> LanceTable:
    return LanceTable(StorageLocation(str(tmp_path / "answers.lance")), ANSWERS)


@pytest.fixture(scope="session")
def ray_cluster() -> Iterator[None]:
    """One Ray for all tests; eight logical CPUs, because two starve its operators."""
    ray = pytest.importorskip("ray", reason="needs the extra `ray`")
    import logging
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Ray's own start-up warns of its coming defaults.
        ray.init(
            num_cpus=8, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR
        )
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)
    yield
    ray.shutdown()
