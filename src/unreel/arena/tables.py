"""The table of a season's clips: who made each, from what, at which cost, or why there is none."""

from typing import Final

from unreel.engine.schema import TableSchema

MADE: Final = TableSchema(
    name="made clips",
    version=1,
    columns={
        "creator": "string",
        "name": "string",
        "side": "string",
        "setting": "string",
        "scene": "string",
        "seed": "int64",
        "model": "string",
        "parameters": "string",
        "traces": "string",
        "cost_usd": "float64",
        "took_us": "int64",
        "sha256": "string",
        "size_bytes": "int64",
        "facts": "string",
        "file": "string",
    },
)
"""One row for a clip that a creator was asked for: `creator` is its title, `name` what it is by all that decides its bytes.

`parameters` and `facts` are JSON; `file` lies below the season's folder. A scene that lacks what the setting needs is a failure too.
"""
