"""The ledger knows what was begun and not finished, whatever kills its writer."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from unreel.engine.start_log import ItemStartLog


def die(path: Path, *items: str) -> None:
    """A process that starts `items` and ends without finishing them."""
    with ItemStartLog(path) as ledger:
        for item in items:
            ledger.begin(item)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.ledger"


def test_from_the_second_death_on_an_item_is_a_suspect(path: Path) -> None:
    die(path, "a", "b")
    die(path, "a", "b")
    with ItemStartLog(path) as ledger:
        assert ledger.is_suspect("a")
        assert ledger.is_suspect("b")
        assert ledger.has_suspects()


def test_what_was_finished_before_the_death_is_no_suspect(path: Path) -> None:
    for _ in range(2):
        with ItemStartLog(path) as ledger:
            ledger.begin("a")
            ledger.begin("b")
            ledger.finish("a")
    with ItemStartLog(path) as ledger:
        assert (ledger.is_suspect("a"), ledger.is_suspect("b")) == (False, True)


def test_starts_of_an_older_ledger_count(path: Path) -> None:
    path.write_text("+a\n!a\n", encoding="utf-8")
    with ItemStartLog(path) as ledger:
        assert ledger.is_suspect("a")


def test_a_finish_forgives_all_deaths(path: Path) -> None:
    die(path, "a")
    die(path, "a")
    with ItemStartLog(path) as ledger:
        ledger.begin("a")
        ledger.finish("a")
    with ItemStartLog(path) as ledger:
        assert not ledger.is_suspect("a")
        assert ledger.deaths("a") == 0


def test_items_stopped_on_purpose_did_not_die(path: Path) -> None:
    with ItemStartLog(path) as ledger:
        ledger.begin("a")
        ledger.withdraw()
    with ItemStartLog(path) as ledger:
        assert ledger.deaths("a") == 0


def test_reopening_keeps_the_count_and_shortens_the_file(path: Path) -> None:
    with ItemStartLog(path) as ledger:
        for number in range(1000):
            ledger.begin(str(number))
            ledger.finish(str(number))
        ledger.begin("a")
    long = path.stat().st_size
    for _ in range(3):
        with ItemStartLog(path) as ledger:
            assert ledger.deaths("a") == 1
    assert path.stat().st_size < 10 < long


def test_a_line_cut_by_a_power_failure_is_not_believed(path: Path) -> None:
    path.write_text("+a\n+b", encoding="utf-8")
    with ItemStartLog(path) as ledger:
        assert ledger.deaths("a") == 1
        assert ledger.deaths("b") == 0


def test_starts_outlive_kill_9_of_their_writer(path: Path) -> None:
    code = (
        "import os, signal, sys; from pathlib import Path; from unreel.engine.start_log import ItemStartLog\n"
        "ItemStartLog(Path(sys.argv[1])).begin('a'); os.kill(os.getpid(), signal.SIGKILL)"
    )
    ended = subprocess.run([sys.executable, "-c", code, os.fspath(path)], check=False)
    assert ended.returncode == -signal.SIGKILL
    with ItemStartLog(path) as ledger:
        assert ledger.deaths("a") == 1
