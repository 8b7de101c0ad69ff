"""What a ledger said to have kept is there, whoever is killed with -9, and is there once."""

import subprocess
import sys
import threading
import time
from pathlib import Path

from campaigns import CAMPAIGN, record_of, tasks_of
from postgres import Postgres
from unreel.annotation.ledger.connection import open_ledger
from unreel.core.errors import MachineError

RECORDS = [record_of(task) for task in tasks_of(6000)]
AT_ONCE = 50
WRITER = """
import sys
from campaigns import record_of, tasks_of
from unreel.annotation.ledger.connection import open_ledger
records = [record_of(task) for task in tasks_of(6000)]
with open_ledger(sys.argv[1]) as ledger:
    for start in range(0, 6000, 50):
        ledger.append(records[start : start + 50])
        print(start + 50, flush=True)
"""


def _keys(address: str) -> list[str]:
    with open_ledger(address) as ledger:
        return [record.key for _, record in ledger.records("votes")]


class Writer(threading.Thread):
    """Appends all records, some at a time, and those that were not told as kept again."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self.address = address
        self.told: list[str] = []
        self.troubles: list[str] = []

    def run(self) -> None:
        with open_ledger(self.address) as ledger:
            for start in range(0, len(RECORDS), AT_ONCE):
                some = RECORDS[start : start + AT_ONCE]
                while True:
                    try:
                        ledger.append(some)
                    except MachineError as error:
                        self.troubles.append(str(error))
                        time.sleep(0.1)
                    else:
                        self.told += [record.key for record in some]
                        break


def _wait_for(writer: Writer, n: int) -> None:
    until_s = time.monotonic() + 60
    while len(writer.told) < n and writer.is_alive() and time.monotonic() < until_s:
        time.sleep(0.001)


def test_a_server_killed_amid_appending_loses_and_doubles_nothing(postgres: Postgres) -> None:
    address = postgres.create_schema("killed")
    with open_ledger(address) as ledger:
        ledger.open_campaign(CAMPAIGN)
    writer = Writer(address)
    writer.start()
    for n in (500, 1500, 2500, 3500):
        _wait_for(writer, n)
        postgres.kill()
        told = set(writer.told)
        postgres.start()
        assert told <= set(_keys(address))
    writer.join(120)
    assert not writer.is_alive()
    kept = _keys(address)
    assert sorted(kept) == sorted(record.key for record in RECORDS)
    assert writer.troubles
    assert all("Run the same command again" in each for each in writer.troubles)
    assert all(postgres.password not in each for each in writer.troubles)


def test_a_writer_killed_amid_appending_loses_and_doubles_nothing(address: str) -> None:
    with open_ledger(address) as ledger:
        ledger.open_campaign(CAMPAIGN)
    command = [sys.executable, "-c", WRITER, address]
    for n in (200, 400):
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
        ) as writer:
            assert writer.stdout is not None
            told = next(int(line) for line in writer.stdout if int(line) >= n)
            writer.kill()
        kept = _keys(address)
        assert len(kept) >= told
        assert len(kept) % AT_ONCE == 0, "a call is kept whole or not at all"
        assert kept == [record.key for record in RECORDS[: len(kept)]]
    with open_ledger(address) as ledger:
        ledger.append(RECORDS)
    assert sorted(_keys(address)) == sorted(record.key for record in RECORDS)
