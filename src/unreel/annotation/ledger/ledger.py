"""Ledger of campaigns: assignments of tasks to people, and all answers."""

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, Final, Self, TypeVar

from sqlalchemy import Column, Connection, Engine, Insert, Select, Table, func, select, text, tuple_
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import IntegrityError

from unreel.annotation.campaign import AnnotationTask, Annotator, Campaign, TaskAssignment
from unreel.annotation.judgements import AnnotationRecord, LedgerNotice
from unreel.annotation.ledger import rows, tables
from unreel.annotation.ledger.tables import READING, translate_database_errors
from unreel.core.chunks import iter_chunks
from unreel.core.errors import (
    InvalidSettingError,
    InvalidValueError,
    UnknownNameError,
    UnreadableSourceError,
    format_library_error,
)

T = TypeVar("T")
_AT_ONCE: Final = 1000
"""Maximum number of rows that are in memory at a time, for reading and writing."""
_ORDER: Final = 0x756E7265656C02
"""Number of the PostgreSQL advisory lock of writers; with it, rows become visible in order of their numbers."""
_CAMPAIGN: Final = "campaign"
_FIXED: Final = ("interface", "benchmark", "overlap", "seed")


class Ledger:
    """Append-only store of campaigns, tasks, assignments and answers.

    Every method is one transaction: it is complete when the call returns, or nothing is stored.
    Repeating a call with the same arguments changes nothing, so a killed command can be run again.
    Iterators read a few rows at a time and hold no connection between reads.
    """

    def __init__(self, engine: Engine, name: str) -> None:
        self._engine = engine
        self._shown = name

    def __repr__(self) -> str:
        return f"Ledger({self._shown!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all database connections; a ledger that is used again opens new ones."""
        self._engine.dispose()

    def enlist(self, annotators: Iterable[Annotator]) -> None:
        """Add annotators to the ledger, each with a name and an e-mail address as login.

        Raises:
            InvalidSettingError: A name is stored with another e-mail, or an e-mail with another name.
        """
        with self._writing() as connection:
            for annotator in annotators:
                row = rows.build_annotator_ledger_row(annotator)
                connection.execute(self._insert(tables.annotators), row)
                known = tables.annotators.c
                same = (known.name == row["name"]) & (known.login == row["login"])
                if connection.execute(select(known.name).where(same)).first() is None:
                    setting, problem = (
                        "annotator",
                        f"{annotator.name}={annotator.email} is half known",
                    )
                    remedy = "One name has one address: keep a known person's, or give both again"
                    raise InvalidSettingError(setting, problem, remedy)

    def annotators(self) -> list[Annotator]:
        """Return all annotators, by name."""
        known = tables.annotators.c
        people = self._read(select(known.name, known.email).order_by(known.name))
        return [Annotator(row["name"], row["email"]) for row in people]

    def open_campaign(self, campaign: Campaign) -> None:
        """Store a campaign if it is new, or a new revision of it if its guidelines or screen changed.

        Raises:
            InvalidSettingError: A campaign of this name is stored with other settings.
        """
        fixed = {"name": campaign.name, **{name: getattr(campaign, name) for name in _FIXED}}
        revision = {
            "guidelines": campaign.guidelines,
            "interface_version": campaign.interface_version,
        }
        with self._writing() as connection:
            connection.execute(
                self._insert(tables.campaigns), {**fixed, "interface": campaign.interface.value}
            )
            newest, number = _find_newest_campaign_revision(connection, campaign.name)
            if newest is not None:
                _require_same_campaign_settings(newest, campaign)
            if newest is None or any(getattr(newest, key) != is_ for key, is_ in revision.items()):
                key_columns = {"campaign": campaign.name, "number": number + 1}
                connection.execute(self._insert(tables.revisions), {**key_columns, **revision})

    def campaign(self, name: str) -> Campaign:
        """Return the newest revision of a campaign; raise `UnknownNameError` if it is unknown."""
        return self.revisions(name)[-1]

    def revisions(self, name: str) -> list[Campaign]:
        """Return all revisions of a campaign, oldest first; each has its own guidelines and screen.

        Raises:
            UnknownNameError: No campaign has that name.
        """
        query = _build_campaigns_query().where(tables.campaigns.c.name == name)
        campaigns = [rows.parse_campaign_ledger_row(row) for row in self._read(query)]
        if not campaigns:
            known = [campaign.name for campaign in self.campaigns()]
            raise UnknownNameError(_CAMPAIGN, name, known)
        return campaigns

    def campaigns(self) -> list[Campaign]:
        """Return the newest revision of every campaign, sorted by name."""
        return list(
            {
                row["name"]: rows.parse_campaign_ledger_row(row)
                for row in self._read(_build_campaigns_query())
            }.values()
        )

    def add_tasks(self, campaign: str, tasks: Iterable[AnnotationTask]) -> int:
        """Add tasks in this order and return the number of new ones; known tasks are not changed."""
        with self._writing(campaign) as connection:
            new_rows = (rows.build_task_ledger_row(campaign, task) for task in tasks)
            return self._add(connection, tables.tasks, new_rows)

    def tasks(self, campaign: str) -> Iterator[AnnotationTask]:
        """Yield the tasks of a campaign in the order in which they were added."""
        return self._made(rows.parse_task_ledger_row, self._numbered(tables.tasks, campaign))

    def assign(self, campaign: str, assignments: Iterable[TaskAssignment]) -> int:
        """Assign tasks to annotators and return the number of new assignments; known ones are not changed.

        Raises:
            InvalidValueError: A task or an annotator is unknown, or a position is taken.
        """
        new_rows = (
            rows.build_assignment_ledger_row(campaign, assignment) for assignment in assignments
        )
        key = ["campaign", "annotator", "task"]
        with self._writing(campaign) as connection:
            try:
                return self._add(connection, tables.assignments, new_rows, key=key)
            except IntegrityError as error:
                msg = (
                    f"an assignment of {campaign} names a task or an annotator that the ledger does not "
                    "hold, or a place in a batch that another task has. Enlist annotators and add tasks "
                    "first, and give each place once"
                )
                raise InvalidValueError(msg) from error

    def assignments(
        self, campaign: str, *, annotator: str | None = None
    ) -> Iterator[TaskAssignment]:
        """Yield the assignments of a campaign, sorted by annotator, batch and position."""
        known = tables.assignments.c
        query = select(tables.assignments).where(known.campaign == campaign)
        if annotator is not None:
            query = query.where(known.annotator == annotator)
        with self._reading() as connection:
            _require_campaign(connection, campaign)
        order = [known.annotator, known.batch, known.position]
        return self._made(rows.parse_assignment_ledger_row, self._pages(query, order))

    def remember(self, campaign: str, kind: str, key: str, value: str) -> None:
        """Store a text of a campaign, such as a project id, under `kind` and `key`; replace an older one."""
        row = {"campaign": campaign, "kind": kind, "key": key, "value": value}
        known = tables.memories.c
        with self._writing(campaign) as connection:
            insert = _get_dialect_module(connection.engine).insert(tables.memories).values(row)
            key_columns = [known.campaign, known.kind, known.key]
            connection.execute(
                insert.on_conflict_do_update(index_elements=key_columns, set_={"value": value})
            )

    def memories(self, campaign: str, kind: str) -> dict[str, str]:
        """Return the texts stored under `kind` of a campaign, by key."""
        known = tables.memories.c
        query = select(known.key, known.value).where(known.campaign == campaign, known.kind == kind)
        return {row["key"]: row["value"] for row in self._read(query.order_by(known.key))}

    def append(self, records: Iterable[AnnotationRecord]) -> int:
        """Store pulled records and return the number of new ones; records with a stored key are skipped.

        Other writers wait meanwhile: pass records in memory, not a stream from a server.

        Raises:
            UnknownNameError: A record belongs to an unknown campaign.
        """
        with self._writing() as connection:
            known: set[str] = set()
            return self._add(
                connection, tables.annotations, _iter_record_rows(connection, records, known)
            )

    def known_keys(self, keys: Collection[str]) -> set[str]:
        """Return the keys in `keys` that have a stored record; `keys` holds at most a few hundred."""
        known = tables.annotations.c.key
        return {row["key"] for row in self._read(select(known).where(known.in_(keys)))}

    def origins(self, campaign: str) -> set[str]:
        """Return the origins of all records of a campaign: the server annotations they were pulled from."""
        known = tables.annotations.c
        query = select(known.origin).where(known.campaign == campaign).distinct()
        return {row["origin"] for row in self._read(query)}

    def records(self, campaign: str, *, after: int = 0) -> Iterator[tuple[int, AnnotationRecord]]:
        """Yield the records whose number is greater than `after`, in order, with their numbers.

        No record with a lower number appears later, even with concurrent writers.
        """
        numbered = self._numbered(tables.annotations, campaign, after=after)
        return self._made(lambda row: (row["seq"], rows.parse_record_ledger_row(row)), numbered)

    def notice(
        self, campaign: str, kind: str, subject: str, by: str, answer: str, at_us: int
    ) -> None:
        """Store a person's decision as a new notice; earlier notices are not changed.

        Args:
            campaign: Name of the campaign.
            kind: Kind of the decision, such as `exclusion`.
            subject: Annotator or task id that the decision is about.
            by: Name of the person who decided.
            answer: Content of the decision.
            at_us: Time of the decision in microseconds since 1970.
        """
        content = {"campaign": campaign, "kind": kind, "subject": subject, "by": by, "said": answer}
        row = rows.build_notice_ledger_row(**content, at_us=at_us)
        with self._writing(campaign) as connection:
            connection.execute(self._insert(tables.notices), row)

    def notices(self, campaign: str, kind: str | None = None) -> list[LedgerNotice]:
        """Return decisions of people in a campaign, such as exclusions and accepted consensuses, oldest first."""
        notices = self._made(rows.parse_notice_ledger_row, self._numbered(tables.notices, campaign))
        return [notice for notice in notices if kind in {None, notice.kind}]

    @contextlib.contextmanager
    def _writing(self, campaign: str | None = None) -> Iterator[Connection]:
        """Open the one write transaction; raise `UnknownNameError` if the campaign is unknown."""
        with translate_database_errors(self._shown), self._engine.begin() as connection:
            if self._engine.dialect.name == "postgresql":
                connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _ORDER})
            if campaign is not None:
                _require_campaign(connection, campaign)
            yield connection

    @contextlib.contextmanager
    def _reading(self) -> Iterator[Connection]:
        with translate_database_errors(self._shown), self._engine.connect() as plain:
            yield plain.execution_options(**{READING: True})

    def _read(self, query: Select[Any]) -> list[rows.Row]:
        with self._reading() as connection:
            return list(connection.execute(query).mappings())

    def _numbered(self, table: Table, campaign: str, *, after: int = 0) -> Iterator[rows.Row]:
        """Yield a campaign's rows above number `after` in order, without rows added during the iteration."""
        known = table.c
        with self._reading() as connection:
            _require_campaign(connection, campaign)
            newest = select(func.max(known.seq)).where(known.campaign == campaign)
            last = connection.execute(newest).scalar() or 0
        query = select(table).where(known.campaign == campaign, known.seq > after)
        return self._pages(query.where(known.seq <= last), [known.seq])

    def _pages(self, query: Select[Any], order: Sequence[Column[Any]]) -> Iterator[rows.Row]:
        """Yield rows in pages sorted by the unique columns `order`, each its own transaction, without locks."""
        page = self._read(query.order_by(*order).limit(_AT_ONCE))
        while page:
            yield from page
            last = tuple(page[-1][column.name] for column in order)
            behind = query.where(tuple_(*order) > last)
            is_last = len(page) < _AT_ONCE
            page = [] if is_last else self._read(behind.order_by(*order).limit(_AT_ONCE))

    def _made(self, make: Callable[[rows.Row], T], source: Iterator[rows.Row]) -> Iterator[T]:
        """Convert each row with `make`; raise `UnreadableSourceError` for a row that it cannot convert."""
        for row in source:
            try:
                result = make(row)
            except (KeyError, TypeError, ValueError) as error:
                problem = (
                    f"contains a row that this release cannot read ({format_library_error(error)})"
                )
                remedy = "Install the newest unreel; if it cannot either, restore a backup"
                raise UnreadableSourceError(self._shown, problem, remedy) from error
            yield result

    def _insert(self, table: Table, key: list[str] | None = None) -> Insert:
        """Return an SQL insert that skips rows that exist already: by any unique key, or only by `key`."""
        insert = _get_dialect_module(self._engine).insert(table)
        without: Insert = insert.on_conflict_do_nothing(index_elements=key)
        return without

    def _add(
        self,
        connection: Connection,
        table: Table,
        new_rows: Iterator[dict[str, Any]],
        *,
        key: list[str] | None = None,
    ) -> int:
        insert, n_new = self._insert(table, key), 0
        for chunk in iter_chunks(new_rows, _AT_ONCE):
            options = {"preserve_rowcount": True}
            n_new += connection.execute(insert, chunk, execution_options=options).rowcount
        return n_new


def _get_dialect_module(engine: Engine) -> Any:
    return postgresql if engine.dialect.name == "postgresql" else sqlite


def _build_campaigns_query() -> Select[Any]:
    """Build the query for campaigns joined with their revisions, sorted by name, then by number."""
    begun, revised = tables.campaigns, tables.revisions
    query = select(begun, revised.c.guidelines, revised.c.interface_version, revised.c.number)
    return query.join(revised).order_by(begun.c.name, revised.c.number)


def _find_newest_campaign_revision(
    connection: Connection, name: str
) -> tuple[Campaign | None, int]:
    saved = (
        connection.execute(_build_campaigns_query().where(tables.campaigns.c.name == name))
        .mappings()
        .all()
    )
    return (rows.parse_campaign_ledger_row(saved[-1]), saved[-1]["number"]) if saved else (None, 0)


def _require_same_campaign_settings(was: Campaign, is_: Campaign) -> None:
    changes = [
        f"{name} is {getattr(was, name)!s}, not {getattr(is_, name)!s}"
        for name in _FIXED
        if getattr(was, name) != getattr(is_, name)
    ]
    if changes:
        problem = f"{is_.name} was begun with other settings: {'; '.join(changes)}"
        raise InvalidSettingError(_CAMPAIGN, problem, "Give those, or begin one of another name")


def _require_campaign(connection: Connection, name: str) -> None:
    known = tables.campaigns.c.name
    if connection.execute(select(func.count()).where(known == name)).scalar():
        return
    names = connection.execute(select(known).order_by(known)).scalars().all()
    raise UnknownNameError(_CAMPAIGN, name, names)


def _iter_record_rows(
    connection: Connection, records: Iterable[AnnotationRecord], known: set[str]
) -> Iterator[dict[str, Any]]:
    for record in records:
        if record.campaign not in known:
            _require_campaign(connection, record.campaign)
            known.add(record.campaign)
        yield rows.build_record_ledger_row(record)
