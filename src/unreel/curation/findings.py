"""Tables of a curation: the result of a step for each clip."""

from typing import Final

from unreel.engine.schema import TableSchema
from unreel.engine.stage import Row
from unreel.engine.table_check import WRONG_CLIP, WRONG_KEY, TableRule, is_hash

FINDINGS: Final = TableSchema(
    name="findings",
    version=1,
    columns={
        "name": "string",
        "location": "string",
        "clip": "string",
        "found": "string",
    },
)
"""One row for what a step of a job found out about a clip; `found` is JSON."""


def find_fault(row: Row) -> str | None:
    """Return the fault of a finding of a curation, or None; its request is not in its row."""
    if not is_hash(row["key"]):
        return WRONG_KEY
    return None if not row["clip"] or is_hash(row["clip"]) else WRONG_CLIP


STEPS: Final = TableRule(FINDINGS, find_fault)
