"""One door for each dangerous thing: text becomes an id, and a file is made, in one place only."""

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "unreel"
MODULES = sorted(SOURCE.rglob("*.py"))
ID_MAKERS = {"core/clip.py", "core/identity.py", "core/names.py"}


def _calls(path: Path) -> Iterator[ast.Call]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def test_text_becomes_the_id_of_a_clip_behind_one_door() -> None:
    elsewhere = [
        f"{path.relative_to(SOURCE)}:{call.lineno}"
        for path in MODULES
        if path.relative_to(SOURCE).as_posix() not in ID_MAKERS
        for call in _calls(path)
        if isinstance(call.func, ast.Name) and call.func.id == "ClipId"
    ]
    assert elsewhere == [], "use core.names.read_clip_id, or an id of core.identity"
