"""Store of answers in SQLite or PostgreSQL, which all replicas of a service share."""

import json
import os
import secrets
import threading
from collections import deque
from contextlib import nullcontext, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sqlalchemy import (
    URL,
    Column,
    ColumnElement,
    Engine,
    Executable,
    Float,
    MetaData,
    Row,
    Table,
    Text,
    bindparam,
    create_engine,
    delete,
    event,
    insert,
    literal_column,
    make_url,
    select,
    update,
)
from sqlalchemy.exc import (
    ArgumentError,
    IntegrityError,
    InterfaceError,
    OperationalError,
    SQLAlchemyError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from unreel.asking.answer_store import QuestionClaim, QuestionResult, StoredAnswer
from unreel.core.answer import Reply, Usage
from unreel.core.errors import InvalidSettingError
from unreel.core.output_files import OutputDirectory

_TABLES = MetaData()
_WAIT_S = 30
_UNAVAILABLE = (InterfaceError, OperationalError, PoolTimeoutError)
"""Errors of a database that is unavailable, as opposed to errors of one statement."""
_CLOCKS = {
    "sqlite": "((julianday('now') - 2440587.5) * 86400)",
    "postgresql": "extract(epoch from clock_timestamp())",
}
"""SQL expressions of the seconds since 1970 by the database's clock, as the clocks of replicas may differ."""
_ANSWERS = Table(
    "answers",
    _TABLES,
    Column("key", Text, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("answer", Text),
)
"""Table of answers as JSON, which can hold every text; a row without an answer is a claim of its owner."""
_OWNERS = Table(
    "answer_owners",
    _TABLES,
    Column("owner", Text, primary_key=True),
    Column("seen_at", Float, nullable=False),
)


class SqlAnswerStore:
    """Database of answers; its methods block and may be called in any thread.

    Args:
        address: Path of an SQLite file, or `postgresql://...`.
        lease_s: Seconds without a heartbeat after which a process counts as ended.
        ask_once: Whether an interrupted question is never asked again.
    """

    def __init__(self, address: str, *, lease_s: float = 15.0, ask_once: bool = False) -> None:
        self.engine = _open_database(address)
        self._now: ColumnElement[float] = literal_column(_CLOCKS[self.engine.dialect.name], Float)
        claims = _ANSWERS.outerjoin(_OWNERS, _ANSWERS.c.owner == _OWNERS.c.owner)
        is_alive = (_OWNERS.c.seen_at > self._now - lease_s).label("is_alive")
        wanted = _ANSWERS.c.key == bindparam("wanted")
        self._find_claim = select(_ANSWERS, is_alive).select_from(claims).where(wanted)
        # Faster than SQLite's own lock, for which a waiting thread sleeps between attempts.
        is_file = self.engine.dialect.name == "sqlite"
        self._writing = threading.Lock() if is_file else nullcontext()
        self._lease_s, self._ask_once = lease_s, ask_once
        self._owner = secrets.token_hex(8)
        self._closed = threading.Event()
        self._unwritten: deque[tuple[str, str | None]] = deque()
        self.n_interrupted = 0
        """Number of claims of ended processes that this process took over."""
        self.create_tables(_TABLES)
        self.change(insert(_OWNERS).values(owner=self._owner, seen_at=self._now))
        self._heart = threading.Thread(target=self._beat, name="answer-store", daemon=True)
        self._heart.start()

    def find(self, key: str, /) -> StoredAnswer | None:
        """Return the stored answer to the question `key`; `None` if there is none."""
        row = self._find_row(key)
        return None if row is None or row.answer is None else _parse_answer(row.answer)

    def claim(self, key: str, /) -> StoredAnswer | QuestionClaim:
        """Return the stored answer to the question `key`, or claim the question for this process."""
        row = self._find_row(key)
        if row is None:
            change: Executable = insert(_ANSWERS).values(key=key, owner=self._owner)
        elif row.answer is not None:
            return _parse_answer(row.answer)
        elif row.is_alive:
            return QuestionClaim.BUSY
        elif self._ask_once:
            return QuestionClaim.INTERRUPTED
        else:
            old = _build_lease_filter(key, row.owner)
            change = update(_ANSWERS).where(*old).values(owner=self._owner)
        try:
            is_ours = self.change(change)
        except IntegrityError:
            return QuestionClaim.BUSY
        self.n_interrupted += row is not None and is_ours
        return QuestionClaim.OURS if is_ours else QuestionClaim.BUSY

    def store(self, result: QuestionResult, reply: Reply, /) -> None:
        """Store the answer to a claimed question."""
        record = asdict(StoredAnswer(reply=reply, box_space=result.box_space))
        self._end_claim(result.key, json.dumps(record))

    def release(self, key: str, /) -> None:
        """End this process's claim of a question that got no answer."""
        self._end_claim(key, None)

    def close(self) -> None:
        """End the lease of this process, and close the database; a second call does nothing."""
        if self._closed.is_set():
            return
        self._closed.set()
        self._heart.join()
        self.change(delete(_OWNERS).where(_OWNERS.c.owner == self._owner))
        self.engine.dispose()

    def create_tables(self, tables: MetaData) -> None:
        """Create the missing ones of `tables`."""
        try:
            tables.create_all(self.engine)
        except SQLAlchemyError:  # another replica created them at the same time
            tables.create_all(self.engine)

    def _find_row(self, key: str) -> Row[Any] | None:
        with self.engine.connect() as connection:
            return connection.execute(self._find_claim, {"wanted": key}).first()

    def change(self, change: Executable) -> bool:
        """Execute one statement in a transaction, and return whether it changed a row."""
        with self._writing, self.engine.begin() as connection:
            return bool(connection.execute(change).rowcount)

    def _end_claim(self, key: str, answer: str | None) -> None:
        """Store the answer and end the claim; without the database, the heartbeat does it later.

        The claim of a living process is never taken over, so a lost change would block its question.
        """
        change: Executable
        if answer is None:
            change = delete(_ANSWERS).where(*_build_lease_filter(key, self._owner))
        else:
            change = update(_ANSWERS).where(_ANSWERS.c.key == key).values(answer=answer)
        try:
            self.change(change)
        except _UNAVAILABLE:
            self._unwritten.append((key, answer))
        except SQLAlchemyError:  # the database cannot store this text
            if answer is None:
                raise
            self._end_claim(key, None)

    def _beat(self) -> None:
        while not self._closed.wait(self._lease_s / 3):
            with suppress(SQLAlchemyError):
                lease = update(_OWNERS).where(_OWNERS.c.owner == self._owner)
                self.change(lease.values(seen_at=self._now))
                for _ in range(len(self._unwritten)):
                    self._end_claim(*self._unwritten.popleft())


def _parse_answer(text: str) -> StoredAnswer:
    record = json.loads(text)
    usage = record["reply"].pop("usage")
    reply = Reply(**record["reply"], usage=None if usage is None else Usage(**usage))
    return StoredAnswer(reply=reply, box_space=record["box_space"])


def _build_lease_filter(key: str, owner: str) -> tuple[ColumnElement[bool], ...]:
    return _ANSWERS.c.key == key, _ANSWERS.c.owner == owner, _ANSWERS.c.answer.is_(None)


def _open_database(address: str) -> Engine:
    setting, remedy = "--store", "Give the path of a file, or postgresql://USER@HOST/DATABASE"
    if "://" not in address:
        return _open_sqlite_file(Path(address).resolve())
    try:
        url = make_url(address)
    except (ArgumentError, ValueError):
        raise InvalidSettingError(setting, "no address of a database", remedy) from None
    if url.drivername in {"postgresql", "postgres"}:
        return create_engine(
            url.set(drivername="postgresql+psycopg"),
            hide_parameters=True,
            pool_pre_ping=True,
            pool_size=16,
            connect_args={"connect_timeout": _WAIT_S},
        )
    raise InvalidSettingError(setting, f"cannot use {url.drivername!a}", remedy)


def _open_sqlite_file(path: Path) -> Engine:
    if not path.exists():  # SQLite would create a file that all users can read
        os.close(OutputDirectory(path.parent).open(path.name, os.O_RDWR))
    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        hide_parameters=True,
        connect_args={"timeout": _WAIT_S},
    )

    @event.listens_for(engine, "connect")
    def set_up(connection: Any, _record: object) -> None:
        for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "trusted_schema=OFF"):
            connection.execute(f"PRAGMA {pragma}")

    return engine
