"""The tests' own PostgreSQL keeps what was committed when it is killed."""

import psycopg
import pytest

from postgres import Postgres


def test_a_killed_server_comes_back_with_what_was_committed(postgres: Postgres) -> None:
    address = postgres.create_database("killed")
    with psycopg.connect(address) as connection:
        connection.execute("CREATE TABLE kept (n int)")
        connection.execute("INSERT INTO kept VALUES (1)")
    postgres.kill()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(address)
    postgres.start()
    with psycopg.connect(address) as connection:
        assert connection.execute("SELECT n FROM kept").fetchall() == [(1,)]


def test_nobody_enters_without_the_password(postgres: Postgres) -> None:
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(postgres.address().replace(postgres.password, "wrong"))
