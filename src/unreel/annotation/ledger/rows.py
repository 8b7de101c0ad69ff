"""Conversion of campaign data to rows of the ledger, and back.

Text inside JSON is written in ASCII: annotators may type characters, such as NUL or half of a
surrogate pair, that databases reject elsewhere.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any, Final

from pydantic import TypeAdapter

from unreel.annotation.campaign import (
    AnnotationInterface,
    AnnotationTask,
    Annotator,
    Campaign,
    PrefillStudyArm,
    TaskAssignment,
)
from unreel.annotation.judgements import (
    VALUES,
    AnnotationRecord,
    LedgerNotice,
    QuarantineReason,
    SubmissionQuarantine,
)
from unreel.core.content_ids import digest
from unreel.core.errors import InvalidValueError

Row = Mapping[Any, Any]
_TASKS: Final = TypeAdapter(AnnotationTask)
_JSON: Final = json.JSONEncoder(sort_keys=True)
_NOTICE: Final = [each.name for each in fields(LedgerNotice)]
_QUARANTINED: Final = "quarantined"


def build_annotator_ledger_row(annotator: Annotator) -> dict[str, Any]:
    """Return the ledger row of an annotator, with the lower-case login that identifies the person."""
    return {**asdict(annotator), "login": annotator.email.casefold()}


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


def build_task_ledger_row(campaign: str, task: AnnotationTask) -> dict[str, Any]:
    """Return the ledger row of a task."""
    return {
        "campaign": campaign,
        "id": task.id,
        "body": _format_json(_TASKS.dump_python(task, mode="json")),
    }


def parse_task_ledger_row(row: Row) -> AnnotationTask:
    """Build a task from its ledger row."""
    return _TASKS.validate_python(json.loads(row["body"]))


def build_assignment_ledger_row(campaign: str, assignment: TaskAssignment) -> dict[str, Any]:
    """Return the ledger row of an assignment."""
    return {"campaign": campaign, **asdict(assignment), "arm": assignment.arm.value}


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
        "outcome": _format_outcome_json(record),
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
    """Return the ledger row of a decision notice, with its key; the same fields give the same key.

    Raises:
        InvalidValueError: A text contains the character NUL.
    """
    if any("\0" in value for value in content.values() if isinstance(value, str)):
        msg = "a notice is text, and this one contains the character NUL. Take it out"
        raise InvalidValueError(msg)
    return {"key": digest("notice", *(str(content[name]) for name in sorted(content))), **content}


def parse_notice_ledger_row(row: Row) -> LedgerNotice:
    """Build a decision notice from its ledger row."""
    return LedgerNotice(**{name: row[name] for name in _NOTICE})


def _format_outcome_json(record: AnnotationRecord) -> str:
    if isinstance(outcome := record.outcome, SubmissionQuarantine):
        reason, detail = outcome.reason.value, outcome.detail
        return _format_json({"kind": _QUARANTINED, "reason": reason, "detail": detail})
    return _format_json(VALUES.dump_python(outcome, mode="json"))


def _sanitise_stored_name(name: str) -> str:
    """Return the name with `?` in place of characters that databases reject."""
    if name.isascii() and "\0" not in name:
        return name
    return name.encode(errors="replace").decode().replace("\0", "?")


def _format_json(value: object) -> str:
    return _JSON.encode(value)
