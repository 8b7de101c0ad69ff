"""Detection of AI-generated video: whether a clip looks generated, where, when and why.

This package exports the domain types and the functions `review`, `reward`, `evaluate`, `open_run`, `score`,
`compare`, `curate`, `open_campaign`, `train`, `run_season`, `rank_season`, `open_benchmark` and `open_media`.
Each name is imported at its first use.
"""

import ast
from importlib import import_module
from pathlib import Path
from typing import Any

_MODULES = {
    alias.name: statement.module
    for statement in ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")).body
    if isinstance(statement, ast.ImportFrom) and statement.module
    for alias in statement.names
}
"""Module of each public name, as declared in `__init__.pyi`, which type checkers read."""

__all__ = sorted(_MODULES)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
