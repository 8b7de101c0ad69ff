"""Fixtures that every folder of tests may use."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from browser import browser, chromium, narrow, serve, watched
from postgres import postgres
from seaweed import s3
from stalls import Stalls, watch_stalls
from studio import studio
from unreel.core.settings import read_environment_settings
from warm import Warm, warm_process

__all__ = [
    "browser",
    "chromium",
    "narrow",
    "postgres",
    "s3",
    "serve",
    "studio",
    "watched",
]  # fixtures that live in files of their own

SHARED = Path(__file__).parents[2] / "shared"

_CPU_AT_START = pytest.StashKey[float]()

settings.register_profile(
    "unreel",
    max_examples=100 if read_environment_settings().slow else 40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("unreel")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of shared test data beside the checkout."""
    if not SHARED.is_dir():
        pytest.skip("../shared is absent: it holds the clips and figures that this test reads")
    return SHARED


@pytest.fixture(scope="session")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warm]:
    """What starts commands without the cost of a start."""
    with warm_process(tmp_path_factory.mktemp("warm")) as started:
        yield started


@pytest.fixture(autouse=True)
def ordinary_priority() -> Iterator[None]:
    """Undo what SVT-AV1 does to a privileged caller: real-time priority, which starves all others."""
    yield
    if os.sched_getscheduler(0) != os.SCHED_OTHER:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


@pytest.fixture
def stalls(tmp_path: Path) -> Iterator[Stalls]:
    """By how much this machine was late, for tests that hold a time limit to account."""
    with watch_stalls(tmp_path / "stalls") as watched:
        yield watched


def pytest_configure() -> None:
    """Hear signals: a shell in the background has Ctrl-C ignored, `nohup` a hang-up, by children too."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Note the processor time at the start of a test, for `.ci/times.py`."""
    item.stash[_CPU_AT_START] = _read_cpu_s()
    return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    """Add the processor time of a test and of the processes it awaited to the JUnit report."""
    if call.when == "teardown":
        cpu_s = _read_cpu_s() - item.stash[_CPU_AT_START]
        item.user_properties.append(("cpu_s", f"{cpu_s:.2f}"))


def _read_cpu_s() -> float:
    return sum(os.times()[:4])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # The longest test begins first, so that nobody waits for it at the end.
    items.sort(key=lambda item: item.path.name != "test_net.py")
    if read_environment_settings().slow:
        return
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.skip(reason="slow: run with UNREEL_SLOW=1"))
