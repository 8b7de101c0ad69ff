"""A protocol knows itself: nothing outside `protocols/` decides by the name of one."""

import ast
from fnmatch import fnmatch
from pathlib import Path

from unreel.protocols.protocol import list_protocol_names

SOURCE = Path(__file__).parents[2] / "src" / "unreel"
NAMES = frozenset(list_protocol_names())
DATA = {
    "rewards/*.py": "parts of a reward, one of which shares the word, and the protocol of pairs",
    "evaluation/sample_review.py": "the recorded answers of the sample, by the instrument that was asked",
    "report/boards/ranking_panels.py": "which of the papers' printed tables stands beside whose figures",
    "benchmarks/entry.py": "layouts of benchmarks, two of which share the word",
    "benchmarks/loader.py": "layouts of benchmarks, two of which share the word",
    "curate/*.py": "a `Trace` that was put into a clip, as a column",
    "cli/curate.py": "the same as a key of JSON",
    "arena/*.py": "what a season asks where nobody says, and a creator's realism, which shares the word",
    "cli/arena.py": "that realism as a column",
    "stats/skill*.py": "that realism as a part of the model",
    "annotation/campaign.py": "the screens that people see, four of which share the word",
    "annotation/interfaces/*.py": "the controls on those screens",
}
"""Files that may hold such a word as data, and what it is there."""


def _is_name(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value in NAMES


def _words(tree: ast.AST) -> list[int]:
    """Lines that hold the name of a protocol as a text of its own."""
    return [
        node.lineno for node in ast.walk(tree) if isinstance(node, ast.Constant) and _is_name(node)
    ]


def _decisions(tree: ast.AST) -> list[int]:
    """Lines that compare with the name of a protocol, in whatever form."""
    found: list[int] = []
    for node in ast.walk(tree):
        match node:
            case ast.Compare():
                sides = [node.left, *node.comparators]
                inner = [part for side in sides for part in _members(side)]
                found += [node.lineno] * any(map(_is_name, inner))
            case ast.MatchValue(value=value) if _is_name(value):
                found.append(node.lineno)
            case ast.Call(func=ast.Attribute(attr="startswith" | "endswith"), args=args):
                found += [node.lineno] * any(map(_is_name, args))
            case _:
                pass
    return found


def _members(node: ast.expr) -> list[ast.expr]:
    match node:
        case ast.Set(elts=elts) | ast.Tuple(elts=elts) | ast.List(elts=elts):
            return elts
        case ast.Dict(keys=keys):
            return [key for key in keys if key is not None]
        case _:
            return [node]


def _outside() -> dict[Path, ast.Module]:
    return {
        path.relative_to(SOURCE): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(SOURCE.rglob("*.py"))
        if "protocols" not in path.relative_to(SOURCE).parts[:1]
    }


def test_no_code_outside_the_protocols_compares_with_the_name_of_one() -> None:
    assert {path: lines for path, tree in _outside().items() if (lines := _decisions(tree))} == {}


def test_names_of_protocols_stand_elsewhere_only_as_documented_data() -> None:
    used = {path for path, tree in _outside().items() if _words(tree)}
    assert {str(p) for p in used if not any(fnmatch(str(p), pattern) for pattern in DATA)} == set()
