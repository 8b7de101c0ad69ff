"""A record that a process appended before it ended is not appended again by the next process."""

import subprocess
import sys
from pathlib import Path

from campaigns import CAMPAIGN, record_of, task_of, tasks_of
from unreel.annotation.ledger.connection import open_ledger

N_RECORDS = 3
FIRST_PROCESS = f"""
import sys
from campaigns import CAMPAIGN, record_of, tasks_of
from unreel.annotation.ledger.connection import open_ledger
with open_ledger(sys.argv[1]) as ledger:
    ledger.open_campaign(CAMPAIGN)
    print(ledger.append(record_of(task) for task in tasks_of({N_RECORDS})))
"""


def test_records_of_an_earlier_process_are_not_doubled(tmp_path: Path) -> None:
    address = str(tmp_path / "ledger.db")
    command = [sys.executable, "-c", FIRST_PROCESS, address]
    tests = Path(__file__).parents[2]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=tests)
    assert int(done.stdout) == N_RECORDS
    records = [record_of(task) for task in tasks_of(N_RECORDS)]
    later = record_of(task_of("later"))
    with open_ledger(address) as ledger:
        assert ledger.append([*records, later]) == 1
        assert [record for _, record in ledger.records(CAMPAIGN.name)] == [*records, later]
