"""Commands reach the package through `unreel.api` only."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "unreel"
ALLOWED = {"api", "cli", "core"}
SHARED = {"unreel.engine.progress"}
"""Progress of a job, which the progress line shows."""
TARGET = re.compile(r"unreel(\.\w+)+:\w+")


def _iter_runtime_imports(body: list[ast.stmt]) -> Iterator[str]:
    """Yield the modules of `unreel` that are imported when the code runs, not only for type checkers."""
    for node in body:
        match node:
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                continue
            case ast.ImportFrom(module=str(module)):
                yield from (
                    f"{module}.{alias.name}" if module in {"unreel", "unreel.api"} else module
                    for alias in node.names
                )
            case ast.Import():
                yield from (alias.name for alias in node.names)
        for part in ("body", "orelse", "handlers", "finalbody"):
            inner = getattr(node, part, None)
            if isinstance(inner, list):
                yield from _iter_runtime_imports(
                    [each for each in inner if isinstance(each, ast.AST)]
                )


def _list_other_layers(path: Path) -> list[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    strings = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    lazy = {text for text in strings if isinstance(text, str) and TARGET.fullmatch(text)}
    modules = lazy.union(_iter_runtime_imports(tree.body))
    return sorted(
        module
        for module in modules - SHARED
        if module.startswith("unreel.") and module.split(".")[1] not in ALLOWED
    )


def test_commands_import_the_api_the_core_and_their_own_console_only() -> None:
    found = {
        path.relative_to(SOURCE).as_posix(): layers
        for path in sorted((SOURCE / "cli").rglob("*.py"))
        if (layers := _list_other_layers(path))
    }
    assert found == {}
