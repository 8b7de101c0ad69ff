"""Logic stands once: no six lines of it are found again in the folders that do the work."""

import ast
import re
from collections.abc import Iterable, Iterator
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).parents[2] / "src" / "unreel"
FOLDERS = (
    "benchmarks",
    "curation",
    "evaluation",
    "report",
    "reviewers",
    "training",
    "arena",
    "cli",
)
ENOUGH = 6
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
BLOCKS = ("body", "handlers", "cases", "orelse", "finalbody")
OWN = "$"
"""Before a name that belongs to a function: what it is called is no part of the logic."""


class Line(NamedTuple):
    """A statement, or the head of one that holds others: its text, and where it stands."""

    text: str
    first: int
    length: int
    """Lines of code that it takes; lone brackets and comments are none, a signature is one."""


def find_repeated(texts: Iterable[tuple[str, str]]) -> Iterator[tuple[tuple[str, int], ...]]:
    """Pairs of places (name, line) from which on at least `ENOUGH` lines of code do the same."""
    places: dict[str, list[tuple[str, int]]] = {}
    for name, text in texts:
        lines = list(_read_lines(text))
        for start, line in enumerate(lines):
            if window := _read_window(lines[start:]):
                places.setdefault(window, []).append((name, line.first))
    for found in places.values():
        yield from combinations(found, 2)


def _read_window(lines: list[Line]) -> str:
    """The first statements of `lines` that make `ENOUGH`, with own names numbered as they come."""
    taken, length = [], 0
    for line in lines:
        taken.append(line.text)
        length += line.length
        if length >= ENOUGH:
            break
    else:
        return ""
    order: dict[str, str] = {}
    return re.sub(
        rf"\{OWN}\w+", lambda own: order.setdefault(own[0], f"{OWN}{len(order)}"), "\n".join(taken)
    )


def _read_lines(text: str) -> Iterator[Line]:
    """All that functions of a module do, from top to bottom."""
    tree, source = ast.parse(text), text.splitlines()
    for function in ast.walk(tree):
        if isinstance(function, FUNCTIONS):
            _mark_own_names(function)
    for node in tree.body:
        yield from _walk(node, source, within=False)


def _mark_own_names(function: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    nodes = list(ast.walk(function))
    bound = {node.arg for node in nodes if isinstance(node, ast.arg)}
    bound |= {
        node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    own = {name for name in bound - {"self"} if not name.startswith(OWN)}  # the outer function's
    for node in nodes:
        if isinstance(node, ast.arg) and node.arg in own:
            node.arg = f"{OWN}{node.arg}"
        elif isinstance(node, ast.Name) and node.id in own:
            node.id = f"{OWN}{node.id}"


def _walk(node: ast.AST, source: list[str], *, within: bool) -> Iterator[Line]:
    """`node` itself, if it is `within` a function and does something, then what it holds."""
    inner = [each for block in BLOCKS for each in getattr(node, block, [])]
    within = within or isinstance(node, FUNCTIONS)
    if within and not _says_nothing(node):
        yield _read_line(node, inner, source)
    for each in inner:
        yield from _walk(each, source, within=within)


def _says_nothing(node: ast.AST) -> bool:
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return is_text or isinstance(node, ast.Import | ast.ImportFrom | ast.ClassDef)


def _read_line(node: ast.AST, inner: list[ast.AST], source: list[str]) -> Line:
    first = _first_line(node)
    last = max(first, _first_line(inner[0]) - 1) if inner else getattr(node, "end_lineno", first)
    code = [line.strip() for line in source[first - 1 : last]]
    length = sum(1 for line in code if line[:1] != "#" and re.search(r"\w", line))
    head = {name: [] if name in BLOCKS else value for name, value in ast.iter_fields(node)}
    return Line(ast.dump(type(node)(**head)), first, 1 if isinstance(node, FUNCTIONS) else length)


def _first_line(node: ast.AST) -> int:
    return node.pattern.lineno if isinstance(node, ast.match_case) else node.lineno


def test_no_logic_of_six_lines_stands_twice() -> None:
    files = [path for folder in FOLDERS for path in sorted((SOURCE / folder).rglob("*.py"))]
    texts = ((path.relative_to(SOURCE).as_posix(), path.read_text("utf-8")) for path in files)
    repeated = set(find_repeated(texts))
    told = [f"{a}:{m} ~ {b}:{n}" for (a, m), (b, n) in sorted(repeated)]
    assert told == [], "\n".join(told)


ONE = """
def total(rows):
    found = []
    for row in rows:
        if row.is_read:  # others do not count
            found.append(row.value)
    if not found:
        return None
    return sum(found)
"""


def find_again(other: str) -> bool:
    return any(find_repeated([("one.py", ONE), ("other.py", other)]))


def test_logic_is_found_again_under_other_names_of_its_own() -> None:
    renamed = ONE.replace("rows", "lines").replace("found", "values").replace("row", "line")
    assert find_again(renamed.replace("total", "count"))
    method = renamed.replace("\n", "\n    ").replace("(lines)", "(self, lines)")
    assert find_again(f"class Sum:{method}")
    assert find_again(f"def outer(a):{method}")


def test_other_logic_of_the_same_shape_is_not_found() -> None:
    assert not find_again(ONE.replace("is_read", "is_told"))
    assert not find_again(ONE.replace("not found", "len(found) < 2"))
    assert not find_again(ONE.replace("found.append(row.value)", "found.append(rows)"))
