"""`unreel annotate exclude` and `include` as people type them."""

from pathlib import Path

import pytest

pytest.importorskip("sqlalchemy", reason="needs the extra annotate: pip install 'unreel[annotate]'")

from campaigns import ANN, BEN, CAMPAIGN, in_order, record_of, tasks_of
from unreel.annotation.ledger.connection import open_ledger


@pytest.fixture
def address(tmp_path: Path) -> str:
    """A ledger in which ann judged two tasks and ben one."""
    found = str(tmp_path / "ledger.db")
    tasks = tasks_of(2)
    with open_ledger(found) as ledger:
        ledger.enlist([ANN, BEN])
        ledger.open_campaign(CAMPAIGN)
        ledger.add_tasks("votes", tasks)
        ledger.assign("votes", [*in_order("ann", tasks), *in_order("ben", tasks)])
        ledger.append([*map(record_of, tasks), record_of(tasks[0], "ben")])
    return found


@pytest.mark.parametrize(
    ("ledger", "warned"),
    [
        ("postgresql://ann:secret@127.0.0.1:1/people", True),
        ("postgresql://ann@127.0.0.1:1/people?password=secret", True),
        ("postgresql://ann@127.0.0.1:1/people", False),
        ("people.db", False),
    ],
)
def test_a_password_on_the_command_line_is_warned_of(run, ledger: str, *, warned: bool) -> None:
    done = run("annotate", "exclude", "votes", "ben", "--ledger", ledger, "--why", "spam")
    assert ("UNREEL_LEDGER or PGPASSWORD" in done.stderr) is warned
    assert "secret" not in done.stderr


@pytest.mark.parametrize(
    ("campaign", "annotator", "why", "words"),
    [
        ("votes", "bem", "spam", "Did you mean 'ben'"),
        ("votez", "ben", "spam", "Did you mean 'votes'"),
        ("votes", "ben", "  ", "needs its reason"),
    ],
)
def test_what_cannot_be_decided_is_told(
    run, address: str, campaign: str, annotator: str, why: str, words: str
) -> None:
    done = run("annotate", "exclude", campaign, annotator, "--ledger", address, "--why", why)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_ledger_that_nobody_named_is_asked_for(run) -> None:
    done = run("annotate", "exclude", "votes", "ben", "--why", "spam")
    assert done.returncode == 2
    assert "UNREEL_LEDGER" in done.stderr
