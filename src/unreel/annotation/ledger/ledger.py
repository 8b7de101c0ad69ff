"""Ledger of campaigns: assignments of tasks to people, and all answers.

Text inside JSON is written in ASCII: annotators may type characters, such as NUL or half of a
surrogate pair, that databases reject elsewhere.
"""

import contextlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any, Self, TypeVar

from pydantic import TypeAdapter
from sqlalchemy import Column, Connection, Engine, Insert, Select, Table, func, select, text, tuple_
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import IntegrityError

from unreel.annotation.campaign import (
    VALUES,
    AnnotationInterface,
    AnnotationRecord,
    AnnotationTask,
    Annotator,
    Campaign,
    LedgerNotice,
    PrefillStudyArm,
    QuarantineReason,
    SubmissionQuarantine,
    TaskAssignment,
)
from unreel.annotation.ledger import tables
from unreel.annotation.ledger.tables import READING, translate_database_errors
from unreel.core.chunks import iter_chunks
from unreel.core.content_ids import digest
from unreel.core.errors import (
    InvalidSettingError,
    InvalidValueError,
    UnknownNameError,
    UnreadableSourceError,
    format_library_error,
)

Row = Mapping[Any, Any]
_TASKS = TypeAdapter(AnnotationTask)
_JSON = json.JSONEncoder(sort_keys=True)
_NOTICE = [each.name for each in fields(LedgerNotice)]
_QUARANTINED = "quarantined"


def parse_campaign_ledger_row(row: Row) -> Campaign:
    """Build a campaign from a joined row of campaign and revision."""
    return Campaign(
        name=row["name"],
        interface=AnnotationInterface(row["interface"]),
        benchmark=row["benchmark"],
        overlap=row["overlap"],
        seed=row["seed"],
        guidelines=row["guidelines"],
        interface_version=row["interface_version"],
    )


def parse_task_ledger_row(row: Row) -> AnnotationTask:
    """Build a task from its ledger row."""
    return _TASKS.validate_python(json.loads(row["body"]))


def parse_assignment_ledger_row(row: Row) -> TaskAssignment:
    """Build an assignment from its ledger row."""
    return TaskAssignment(
        annotator=row["annotator"],
        task=row["task"],
        batch=row["batch"],
        position=row["position"],
        arm=PrefillStudyArm(row["arm"]),
        swapped=row["swapped"],
    )


def build_record_ledger_row(record: AnnotationRecord) -> dict[str, Any]:
    """Return the keyed ledger row of an annotation; characters that databases reject are replaced."""
    if isinstance(outcome := record.outcome, SubmissionQuarantine):
        reason, detail = outcome.reason.value, outcome.detail
        stored = {"kind": _QUARANTINED, "reason": reason, "detail": detail}
    else:
        stored = VALUES.dump_python(outcome, mode="json")
    return {
        "key": record.key,
        "campaign": record.campaign,
        "annotator": _sanitise_stored_name(record.annotator),
        "task": _sanitise_stored_name(record.task),
        "origin": _sanitise_stored_name(record.origin),
        "guidelines_version": record.guidelines_version,
        "interface_version": record.interface_version,
        "submitted_us": record.submitted_us,
        "lead_us": record.lead_us,
        "raw": record.raw,
        "outcome": _format_json(stored),
    }


def parse_record_ledger_row(row: Row) -> AnnotationRecord:
    """Build the record of a pulled annotation from its ledger row."""
    outcome = json.loads(row["outcome"])
    return AnnotationRecord(
        campaign=row["campaign"],
        annotator=row["annotator"],
        task=row["task"],
        origin=row["origin"],
        guidelines_version=row["guidelines_version"],
        interface_version=row["interface_version"],
        submitted_us=row["submitted_us"],
        lead_us=row["lead_us"],
        raw=row["raw"],
        outcome=SubmissionQuarantine(QuarantineReason(outcome["reason"]), outcome["detail"])
        if outcome["kind"] == _QUARANTINED
        else VALUES.validate_python(outcome),
    )


def build_notice_ledger_row(**content: Any) -> dict[str, Any]:
    """Return the ledger row of a decision notice, with its key; the same fields give the same key."""
    if any("\0" in value for value in content.values() if isinstance(value, str)):
        raise InvalidValueError(
            "a notice is text, and this one contains the character NUL. Take it out"
        )
    return {"key": digest("notice", *(str(content[name]) for name in sorted(content))), **content}


def parse_notice_ledger_row(row: Row) -> LedgerNotice:
    """Build a decision notice from its ledger row."""
    return LedgerNotice(**{name: row[name] for name in _NOTICE})


def _sanitise_stored_name(name: str) -> str:
    """Return the name with `?` in place of characters that databases reject."""
    if name.isascii() and "\0" not in name:
        return name
    return name.encode(errors="replace").decode().replace("\0", "?")


def _format_json(value: object) -> str:
    return _JSON.encode(value)


T = TypeVar("T")
_AT_ONCE = 1000
"""Maximum number of rows that are in memory at a time, for reading and writing."""
_ORDER = 0x756E7265656C02
"""Number of the PostgreSQL advisory lock of writers; with it, rows become visible in order of their numbers."""
_CAMPAIGN = "campaign"
_FIXED = ("interface", "benchmark", "overlap", "seed")


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
        """Add annotators to the ledger, each with a name and an e-mail address as login."""
        with self._writing() as connection:
            for annotator in annotators:
                row = {**asdict(annotator), "login": annotator.email.casefold()}
                connection.execute(self._insert(tables.annotators), row)
                known = tables.annotators.c
                same = (known.name == row["name"]) & (known.login == row["login"])
                if connection.execute(select(known.name).where(same)).first() is None:
                    raise InvalidSettingError(
                        "annotator",
                        f"{annotator.name}={annotator.email} is half known",
                        "One name has one address: keep a known person's, or give both again",
                    )

    def annotators(self) -> list[Annotator]:
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
            query = _build_campaigns_query().where(tables.campaigns.c.name == campaign.name)
            saved = connection.execute(query).mappings().all()
            newest = parse_campaign_ledger_row(saved[-1]) if saved else None
            if newest is not None:
                changes = [
                    f"{name} is {getattr(newest, name)!s}, not {getattr(campaign, name)!s}"
                    for name in _FIXED
                    if getattr(newest, name) != getattr(campaign, name)
                ]
                if changes:
                    raise InvalidSettingError(
                        _CAMPAIGN,
                        f"{campaign.name} was begun with other settings: {'; '.join(changes)}",
                        "Give those, or begin one of another name",
                    )
            if newest is None or any(getattr(newest, key) != is_ for key, is_ in revision.items()):
                number = saved[-1]["number"] + 1 if saved else 1
                key_columns = {"campaign": campaign.name, "number": number}
                connection.execute(self._insert(tables.revisions), {**key_columns, **revision})

    def campaign(self, name: str) -> Campaign:
        """Return the newest revision of a campaign; raise `UnknownNameError` if it is unknown."""
        return self.revisions(name)[-1]

    def revisions(self, name: str) -> list[Campaign]:
        """Return all revisions of a campaign, oldest first; each has its own guidelines and screen."""
        query = _build_campaigns_query().where(tables.campaigns.c.name == name)
        campaigns = [parse_campaign_ledger_row(row) for row in self._read(query)]
        if not campaigns:
            known = [campaign.name for campaign in self.campaigns()]
            raise UnknownNameError(_CAMPAIGN, name, known)
        return campaigns

    def campaigns(self) -> list[Campaign]:
        """Return the newest revision of every campaign, sorted by name."""
        rows = self._read(_build_campaigns_query())
        return list({row["name"]: parse_campaign_ledger_row(row) for row in rows}.values())

    def add_tasks(self, campaign: str, tasks: Iterable[AnnotationTask]) -> int:
        """Add tasks in this order and return the number of new ones; known tasks are not changed."""
        with self._writing(campaign) as connection:
            new_rows = (
                {
                    "campaign": campaign,
                    "id": task.id,
                    "body": _format_json(_TASKS.dump_python(task, mode="json")),
                }
                for task in tasks
            )
            return self._add(connection, tables.tasks, new_rows)

    def tasks(self, campaign: str) -> Iterator[AnnotationTask]:
        """Yield the tasks of a campaign in the order in which they were added."""
        return self._made(parse_task_ledger_row, self._numbered(tables.tasks, campaign))

    def assign(self, campaign: str, assignments: Iterable[TaskAssignment]) -> int:
        """Assign tasks to annotators and return the number of new assignments; known ones are not changed."""
        new_rows = (
            {"campaign": campaign, **asdict(assignment), "arm": assignment.arm.value}
            for assignment in assignments
        )
        key = ["campaign", "annotator", "task"]
        with self._writing(campaign) as connection:
            try:
                return self._add(connection, tables.assignments, new_rows, key=key)
            except IntegrityError as error:
                raise InvalidValueError(
                    f"an assignment of {campaign} names a task or an annotator that the ledger does not "
                    "hold, or a place in a batch that another task has. Enlist annotators and add tasks "
                    "first, and give each place once"
                ) from error

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
        return self._made(parse_assignment_ledger_row, self._pages(query, order))

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
        """
        with self._writing() as connection:
            known: set[str] = set()

            def iter_rows() -> Iterator[dict[str, Any]]:
                for record in records:
                    if record.campaign not in known:
                        _require_campaign(connection, record.campaign)
                        known.add(record.campaign)
                    yield build_record_ledger_row(record)

            return self._add(connection, tables.annotations, iter_rows())

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
        return self._made(lambda row: (row["seq"], parse_record_ledger_row(row)), numbered)

    def notice(
        self, campaign: str, kind: str, subject: str, by: str, answer: str, at_us: int
    ) -> None:
        """Store a person's decision as a new notice; earlier notices are not changed.

        `subject` is the annotator or task id that the decision is about.
        """
        content = {"campaign": campaign, "kind": kind, "subject": subject, "by": by, "said": answer}
        row = build_notice_ledger_row(**content, at_us=at_us)
        with self._writing(campaign) as connection:
            connection.execute(self._insert(tables.notices), row)

    def notices(self, campaign: str, kind: str | None = None) -> list[LedgerNotice]:
        """Return decisions of people in a campaign, such as exclusions and accepted consensuses, oldest first."""
        notices = self._made(parse_notice_ledger_row, self._numbered(tables.notices, campaign))
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

    def _read(self, query: Select[Any]) -> list[Row]:
        with self._reading() as connection:
            return list(connection.execute(query).mappings())

    def _numbered(self, table: Table, campaign: str, *, after: int = 0) -> Iterator[Row]:
        """Yield a campaign's rows above number `after` in order, without rows added during the iteration."""
        known = table.c
        with self._reading() as connection:
            _require_campaign(connection, campaign)
            newest = select(func.max(known.seq)).where(known.campaign == campaign)
            last = connection.execute(newest).scalar() or 0
        query = select(table).where(known.campaign == campaign, known.seq > after)
        return self._pages(query.where(known.seq <= last), [known.seq])

    def _pages(self, query: Select[Any], order: Sequence[Column[Any]]) -> Iterator[Row]:
        """Yield rows in pages sorted by the unique columns `order`, each its own transaction, without locks."""
        page = self._read(query.order_by(*order).limit(_AT_ONCE))
        while page:
            yield from page
            last = tuple(page[-1][column.name] for column in order)
            next_rows = query.where(tuple_(*order) > last)
            is_last = len(page) < _AT_ONCE
            page = [] if is_last else self._read(next_rows.order_by(*order).limit(_AT_ONCE))

    def _made(self, make: Callable[[Row], T], source: Iterator[Row]) -> Iterator[T]:
        """Convert each row with `make`; raise `UnreadableSourceError` for a row that it cannot convert."""
        for row in source:
            try:
                result = make(row)
            except (KeyError, TypeError, ValueError) as error:
                raise UnreadableSourceError(
                    self._shown,
                    f"contains a row that this release cannot read ({format_library_error(error)})",
                    "Install the newest unreel; if it cannot either, restore a backup",
                ) from error
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


def _require_campaign(connection: Connection, name: str) -> None:
    known = tables.campaigns.c.name
    if connection.execute(select(func.count()).where(known == name)).scalar():
        return
    names = connection.execute(select(known).order_by(known)).scalars().all()
    raise UnknownNameError(_CAMPAIGN, name, names)
