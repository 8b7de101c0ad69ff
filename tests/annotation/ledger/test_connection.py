"""A ledger is opened by its address, brought up to date once, and never shows its password."""

import multiprocessing
import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import text

from campaigns import CAMPAIGN, open_and_close
from postgres import Postgres
from unreel.annotation.ledger import connection as opening
from unreel.annotation.ledger.connection import open_ledger, resolve_ledger_url
from unreel.annotation.ledger.tables import TABLES, VERSION
from unreel.core.errors import InvalidSettingError, MachineError, UnreadableSourceError
from unreel.core.settings import build_child_environment, read_environment_settings


def test_the_migrations_make_the_tables_that_this_release_uses(address: str) -> None:
    with open_ledger(address) as ledger, ledger._engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION})
        assert compare_metadata(context, TABLES) == []


def test_processes_that_open_a_new_ledger_at_once_make_its_tables_once(address: str) -> None:
    context = multiprocessing.get_context("spawn")
    openers = [context.Process(target=open_and_close, args=(address,)) for _ in range(2)]
    for opener in openers:
        opener.start()
    for opener in openers:
        opener.join()
    assert [opener.exitcode for opener in openers] == [0] * 2
    with open_ledger(address) as ledger, ledger._engine.connect() as connection:
        assert connection.execute(text(f"SELECT * FROM {VERSION}")).all() == [("0001",)]


def test_a_ledger_of_a_newer_release_is_refused_and_left_alone(address: str) -> None:
    with open_ledger(address) as ledger:
        ledger.open_campaign(CAMPAIGN)
        with ledger._engine.begin() as connection:
            connection.execute(text(f"UPDATE {VERSION} SET version_num = '0999'"))
    with pytest.raises(UnreadableSourceError, match=r"newer unreel made it \(revision 0999\)"):
        open_ledger(address)


def test_a_file_may_be_named_by_path_or_by_url(tmp_path: Path) -> None:
    path = tmp_path / "a folder" / "50% done.db"
    path.parent.mkdir()
    with open_ledger(str(path)) as ledger:
        ledger.open_campaign(CAMPAIGN)
    with open_ledger(f"sqlite:///{path}") as ledger:
        assert ledger.campaigns() == [CAMPAIGN]


def test_only_its_owner_may_read_the_file(tmp_path: Path) -> None:
    with open_ledger(str(tmp_path / "ledger.db")) as ledger:
        ledger.open_campaign(CAMPAIGN)
        modes = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == {0o600}


def _write_text(path: Path) -> None:
    path.write_text("annotator,task\n" * 1000)


def _cut_off(path: Path) -> None:
    with open_ledger(str(path)) as ledger:
        ledger.open_campaign(CAMPAIGN)
    os.truncate(path, path.stat().st_size // 2)


@pytest.mark.parametrize("spoil", [_write_text, _cut_off])
def test_a_file_that_is_no_ledger_is_refused_in_words(
    tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    path = tmp_path / "ledger.db"
    spoil(path)
    before = path.read_bytes()
    with pytest.raises(UnreadableSourceError, match="Name the file or database of a ledger"):
        open_ledger(str(path)).campaigns()
    assert path.read_bytes() == before


def test_a_pipe_in_the_place_of_the_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(MachineError, match="Name a plain file"):
        open_ledger(str(tmp_path / "pipe"))


def test_a_writer_that_waits_too_long_is_told_who_holds_it_up(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "_WAIT_S", 1)
    with open_ledger(address) as ledger, open_ledger(address) as other:
        ledger.open_campaign(CAMPAIGN)
        with ledger._writing(), pytest.raises(MachineError, match="Another process writes it"):
            other.remember("votes", "room", "ann/1", "1")
        assert other.memories("votes", "room") == {}


@pytest.mark.parametrize(
    "address",
    [
        "mysql://u:secret@h/d",
        "sqlite://",
        ":memory:",
        "postgresql://u:secret@h:port/d",
        "x://[",
        "",
    ],
)
def test_an_address_that_cannot_be_one_is_refused_without_its_password(address: str) -> None:
    with pytest.raises(InvalidSettingError, match="postgresql://USER:PASSWORD@HOST") as refused:
        open_ledger(address)
    assert "secret" not in str(refused.value)


def test_a_server_that_is_not_there_is_told_without_the_password() -> None:
    with socket.create_server(("127.0.0.1", 0)) as one:
        port = one.getsockname()[1]
    address = f"postgresql://lead:hunter2@127.0.0.1:{port}/ledger?application_name=hunter2"
    with pytest.raises(MachineError, match="Start its server again") as refused:
        open_ledger(address)
    assert f"postgresql://lead:***@127.0.0.1:{port}/ledger" in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_a_wrong_password_or_database_is_told_with_what_to_do(postgres: Postgres) -> None:
    with pytest.raises(MachineError, match="right user and password"):
        open_ledger(postgres.address().replace(postgres.password, "wrong"))
    with pytest.raises(MachineError, match="createdb"):
        open_ledger(postgres.address("nothing"))


def test_a_user_who_may_not_make_tables_is_told_so(postgres: Postgres) -> None:
    import psycopg

    with psycopg.connect(postgres.address(), autocommit=True) as connection:
        connection.execute("CREATE ROLE guest LOGIN PASSWORD 'guest'")
    address = postgres.address().replace(f"unreel:{postgres.password}", "guest:guest")
    with pytest.raises(MachineError, match="GRANT ALL ON SCHEMA"):
        open_ledger(address)


def test_a_ledger_shows_its_address_without_the_password(postgres: Postgres) -> None:
    with open_ledger(postgres.create_schema("shown")) as ledger:
        assert postgres.password not in repr(ledger)
        assert "postgresql://unreel:***@127.0.0.1" in repr(ledger)


def test_the_setting_names_the_ledger_unless_the_command_does() -> None:
    settings = read_environment_settings({"UNREEL_LEDGER": "postgresql://u:secret@h/d"})
    assert resolve_ledger_url(None, settings) == "postgresql://u:secret@h/d"
    assert resolve_ledger_url("here.db", settings) == "here.db"
    assert "secret" not in repr(settings)
    with pytest.raises(InvalidSettingError, match="UNREEL_LEDGER"):
        resolve_ledger_url(None, read_environment_settings({}))


def test_servers_that_are_started_here_are_not_given_the_ledger() -> None:
    assert build_child_environment({}, {}, environment={"UNREEL_LEDGER": "x", "PATH": "p"}) == {
        "PATH": "p"
    }
