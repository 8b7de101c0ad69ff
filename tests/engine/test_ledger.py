"""The ledger tells the guilty from their neighbours, whatever kills its writer."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from unreel.engine.ledger import DEATHS_ALLOWED, Ledger, Order


def die(path: Path, *items: str, alone: bool = False) -> None:
    """A process that starts `items` and ends without finishing them."""
    with Ledger(path) as ledger:
        for item in items:
            ledger.begin(item, alone=alone)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.ledger"


def test_an_item_never_seen_may_run(path: Path) -> None:
    with Ledger(path) as ledger:
        assert ledger.order("a") is Order.RUN
        assert ledger.deaths("a") == 0


def test_one_death_in_company_changes_nothing(path: Path) -> None:
    die(path, "a", "b")
    with Ledger(path) as ledger:
        assert ledger.order("a") is Order.RUN
        assert ledger.deaths("a") == 1


def test_from_the_second_death_on_an_item_runs_alone(path: Path) -> None:
    die(path, "a", "b")
    die(path, "a", "b")
    with Ledger(path) as ledger:
        assert ledger.order("a") is ledger.order("b") is Order.ALONE


def test_many_deaths_in_company_condemn_nobody(path: Path) -> None:
    for _ in range(10):
        die(path, "a", "b")
    with Ledger(path) as ledger:
        assert ledger.order("a") is Order.ALONE


def test_a_suspect_that_dies_alone_is_quarantined_at_its_third_death(path: Path) -> None:
    die(path, "a", "b")
    die(path, "a", "b")
    die(path, "a", alone=True)
    with Ledger(path) as ledger:
        assert ledger.deaths("a") == DEATHS_ALLOWED
        assert ledger.order("a") is Order.QUARANTINE
        assert ledger.order("b") is Order.ALONE


def test_a_finish_forgives_all_deaths(path: Path) -> None:
    die(path, "a")
    die(path, "a")
    with Ledger(path) as ledger:
        ledger.begin("a", alone=True)
        ledger.finish("a")
    with Ledger(path) as ledger:
        assert ledger.order("a") is Order.RUN
        assert ledger.deaths("a") == 0


def test_a_start_of_an_open_item_is_a_death_of_the_one_before(path: Path) -> None:
    with Ledger(path) as ledger:
        ledger.begin("a")
        assert ledger.deaths("a") == 1
        ledger.begin("a")
        assert ledger.order("a") is Order.ALONE


def test_items_stopped_on_purpose_did_not_die(path: Path) -> None:
    with Ledger(path) as ledger:
        ledger.begin("a")
        ledger.withdraw()
    with Ledger(path) as ledger:
        assert ledger.deaths("a") == 0


def test_reopening_keeps_the_count_and_shortens_the_file(path: Path) -> None:
    with Ledger(path) as ledger:
        for number in range(1000):
            ledger.begin(str(number))
            ledger.finish(str(number))
        ledger.begin("a")
    long = path.stat().st_size
    for _ in range(3):
        with Ledger(path) as ledger:
            assert ledger.deaths("a") == 1
    assert path.stat().st_size < 10 < long


def test_a_line_cut_by_a_power_failure_is_not_believed(path: Path) -> None:
    path.write_text("+a\n+b", encoding="utf-8")
    with Ledger(path) as ledger:
        assert ledger.deaths("a") == 1
        assert ledger.deaths("b") == 0


def test_starts_outlive_kill_9_of_their_writer(path: Path) -> None:
    code = (
        "import os, signal, sys; from pathlib import Path; from unreel.engine.ledger import Ledger\n"
        "Ledger(Path(sys.argv[1])).begin('a'); os.kill(os.getpid(), signal.SIGKILL)"
    )
    ended = subprocess.run([sys.executable, "-c", code, os.fspath(path)], check=False)
    assert ended.returncode == -signal.SIGKILL
    with Ledger(path) as ledger:
        assert ledger.deaths("a") == 1
