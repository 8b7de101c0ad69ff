"""Schemas of a run's tables of answers and of judges' rulings; that of clips is in `engine.clip_facts`."""

from typing import Final

from unreel.core.answer import Usage
from unreel.engine.schema import TableSchema
from unreel.engine.stage import Row

ANSWERS: Final = TableSchema(
    name="answers",
    version=1,
    columns={
        "reviewer": "string",
        "clip": "string",
        "second": "string",
        "protocol": "string",
        "protocol_version": "int32",
        "condition": "string",
        "text": "string",
        "latency_us": "int64",
        "input_tokens": "int64",
        "output_tokens": "int64",
        "cost_usd": "float64",
        "notes": "string",
        "usage_estimated": "bool",
        "answered_by": "string",
        "reply_digest": "string",
    },
    later=frozenset({"answered_by", "reply_digest", "usage_estimated"}),
)
"""Schema of answers: one row per question and reviewer; `second` is the other clip of a pair, `notes` is JSON.

`answered_by` is the model that the response names if it is not the requested one, `reply_digest` a hash of
the reply's text, checked when answers are scored.
"""

RULINGS: Final = TableSchema(
    name="rulings",
    version=1,
    columns={
        "judge": "string",
        "score": "float64",
        "why": "string",
        "detail": "string",
        "input_tokens": "int64",
        "output_tokens": "int64",
    },
)
"""Schema of rulings: one row per judge and pair of texts, with a score, or in `why` the reason for a missing one.

The key is a hash of the judge, its prompt and both texts; prompt and texts are not stored. Tokens are those of
all replies for the row.
"""


def build_token_columns(usage: Usage | None) -> Row:
    """Return the token columns of a table row; they are empty if no tokens were reported."""
    return {
        "input_tokens": None if usage is None else usage.input_tokens,
        "output_tokens": None if usage is None else usage.output_tokens,
    }
