"""Cache of answers and rewards in SQLite or PostgreSQL, which all replicas of a service share."""

import os
import secrets
import threading
from collections import deque
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any, Final

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

from unreel.core.errors import InvalidSettingError
from unreel.core.output_files import OutputDirectory
from unreel.rewards.model import CachedAnswer, QuestionClaimState

_TABLES: Final = MetaData()
_WAIT_S: Final = 30
_UNAVAILABLE: Final = (InterfaceError, OperationalError, PoolTimeoutError)
"""Errors of a database that is unavailable, as opposed to errors of one statement."""
_CLOCKS: Final = {
    "sqlite": "((julianday('now') - 2440587.5) * 86400)",
    "postgresql": "extract(epoch from clock_timestamp())",
}
"""SQL expressions of the seconds since 1970 by the database's clock, as the clocks of replicas may differ."""
_ANSWERS: Final = Table(
    "reward_answers",
    _TABLES,
    Column("key", Text, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("answer", Text),
    Column("box_space", Text),
)
"""Table of answers; a row without an answer is a claim of its owner."""
_OWNERS: Final = Table(
    "reward_owners",
    _TABLES,
    Column("owner", Text, primary_key=True),
    Column("seen_at", Float, nullable=False),
)
_REWARDS: Final = Table(
    "reward_results",
    _TABLES,
    Column("reward_id", Text, primary_key=True),
    Column("document", Text, nullable=False),
)


class SqlRewardStore:
    """Database of cached answers and rewards; its methods block and may be called in any thread.

    Args:
        address: Path of an SQLite file, or `postgresql://...`.
        lease_s: Seconds without a heartbeat after which a process counts as ended.
        ask_once: Whether an interrupted question is never asked again.
    """

    def __init__(self, address: str, *, lease_s: float = 15.0, ask_once: bool = False) -> None:
        self._engine = _open_database(address)
        self._now: ColumnElement[float] = literal_column(_CLOCKS[self._engine.dialect.name], Float)
        claims = _ANSWERS.outerjoin(_OWNERS, _ANSWERS.c.owner == _OWNERS.c.owner)
        is_alive = (_OWNERS.c.seen_at > self._now - lease_s).label("is_alive")
        wanted = _ANSWERS.c.key == bindparam("wanted")
        self._find_claim = select(_ANSWERS, is_alive).select_from(claims).where(wanted)
        # Faster than SQLite's own lock, for which a waiting thread sleeps between attempts.
        is_file = self._engine.dialect.name == "sqlite"
        self._writing = threading.Lock() if is_file else nullcontext()
        self._lease_s, self._ask_once = lease_s, ask_once
        self._owner = secrets.token_hex(8)
        self._closed = threading.Event()
        self._unwritten: deque[tuple[str, CachedAnswer | None]] = deque()
        self.n_interrupted = 0
        """Number of claims of ended processes that this process took over."""
        try:
            _TABLES.create_all(self._engine)
        except SQLAlchemyError:  # another replica created them at the same time
            _TABLES.create_all(self._engine)
        self._change(insert(_OWNERS).values(owner=self._owner, seen_at=self._now))
        self._heart = threading.Thread(target=self._beat, name="reward-store", daemon=True)
        self._heart.start()

    def find(self, key: str, /) -> CachedAnswer | None:
        """Return the stored answer to the question `key`; `None` if there is none."""
        row = self._find_row(key)
        return (
            None if row is None or row.answer is None else CachedAnswer(row.answer, row.box_space)
        )

    def claim(self, key: str, /) -> CachedAnswer | QuestionClaimState:
        """Return the stored answer to the question `key`, or claim the question for this process."""
        row = self._find_row(key)
        if row is None:
            change: Executable = insert(_ANSWERS).values(key=key, owner=self._owner)
        elif row.answer is not None:
            return CachedAnswer(row.answer, row.box_space)
        elif row.is_alive:
            return QuestionClaimState.BUSY
        elif self._ask_once:
            return QuestionClaimState.INTERRUPTED
        else:
            old = _build_lease_filter(key, row.owner)
            change = update(_ANSWERS).where(*old).values(owner=self._owner)
        try:
            is_ours = self._change(change)
        except IntegrityError:
            return QuestionClaimState.BUSY
        self.n_interrupted += row is not None and is_ours
        return QuestionClaimState.OURS if is_ours else QuestionClaimState.BUSY

    def store(self, key: str, answer: CachedAnswer, /) -> None:
        """Store the answer to a claimed question."""
        self._end_claim(key, answer)

    def release(self, key: str, /) -> None:
        """End this process's claim of a question that got no answer."""
        self._end_claim(key, None)

    def read_reward(self, reward_id: str) -> str | None:
        """Return the stored JSON of the reward with this id; `None` if there is none."""
        query = select(_REWARDS.c.document).where(_REWARDS.c.reward_id == reward_id)
        with self._engine.connect() as connection:
            document: str | None = connection.execute(query).scalar()
        return document

    def write_reward(self, reward_id: str, document: str) -> None:
        """Store the JSON of a reward; a reward that is already stored stays."""
        with suppress(IntegrityError):
            self._change(insert(_REWARDS).values(reward_id=reward_id, document=document))

    def close(self) -> None:
        """End the lease of this process, and close the database; a second call does nothing."""
        if self._closed.is_set():
            return
        self._closed.set()
        self._heart.join()
        self._change(delete(_OWNERS).where(_OWNERS.c.owner == self._owner))
        self._engine.dispose()

    def _find_row(self, key: str) -> Row[Any] | None:
        with self._engine.connect() as connection:
            return connection.execute(self._find_claim, {"wanted": key}).first()

    def _change(self, change: Executable) -> bool:
        """Execute one statement in a transaction, and return whether it changed a row."""
        with self._writing, self._engine.begin() as connection:
            return bool(connection.execute(change).rowcount)

    def _end_claim(self, key: str, answer: CachedAnswer | None) -> None:
        """Store the answer and end the claim; without the database, the heartbeat does it later.

        The claim of a living process is never taken over, so a lost change would block its question.
        """
        change: Executable
        if answer is None:
            change = delete(_ANSWERS).where(*_build_lease_filter(key, self._owner))
        else:
            row = update(_ANSWERS).where(_ANSWERS.c.key == key)
            change = row.values(answer=answer.text, box_space=answer.box_space)
        try:
            self._change(change)
        except _UNAVAILABLE:
            self._unwritten.append((key, answer))
        except (SQLAlchemyError, UnicodeError):  # the database cannot store this text
            if answer is None:
                raise
            self._end_claim(key, None)

    def _beat(self) -> None:
        while not self._closed.wait(self._lease_s / 3):
            with suppress(SQLAlchemyError):
                lease = update(_OWNERS).where(_OWNERS.c.owner == self._owner)
                self._change(lease.values(seen_at=self._now))
                for _ in range(len(self._unwritten)):
                    self._end_claim(*self._unwritten.popleft())


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
