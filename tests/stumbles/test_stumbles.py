"""A new user's mistakes end with words that help: see `replay.py`."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")

from pace import slowness
from stumbles.replay import draw_stock, load, rejecting, replay
from warm import Warm

STUMBLES = load()


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stock")
    draw_stock(folder)
    return folder


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with rejecting() as address:
        yield address


def test_there_are_thirty_of_them() -> None:
    assert len(STUMBLES) >= 30


@pytest.mark.parametrize("name", STUMBLES)
def test_a_stumble_ends_with_words_that_help(
    name: str, stock: Path, server: str, tmp_path: Path, warm: Warm
) -> None:
    folder = tmp_path / "here"
    shutil.copytree(stock, folder)
    wanted = STUMBLES[name]
    ending = replay(wanted, folder, server, warm.run)
    patient = replace(wanted, within_s=wanted.within_s * 2 * slowness())  # others run beside it
    assert ending.faults(patient) == [], ending.text
