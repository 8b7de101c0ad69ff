"""Schemas of a run's tables of answers and of judges' rulings; `engine.survey` has that of clips."""

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
"""One row for a question put to a reviewer; `second` is the other clip of a pair, `notes` is JSON.

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
"""One row for two texts before a judge: a score, or in `why` the word for which there is none.

The key follows from the judge, its prompt and both texts, none of which is stored. Tokens are those of
all replies behind the row.
"""


def build_token_columns(usage: Usage | None) -> Row:
    """Return the token columns of a table row; they are empty if no tokens were reported."""
    return {
        "input_tokens": None if usage is None else usage.input_tokens,
        "output_tokens": None if usage is None else usage.output_tokens,
    }
