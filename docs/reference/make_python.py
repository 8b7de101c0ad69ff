"""Writer of the site's page `reference/python` from the docstrings of all that `import unreel` promises."""

import ast
import dataclasses
import enum
import inspect
import re
import types
from collections.abc import Iterator
from importlib import import_module
from itertools import pairwise
from textwrap import dedent, indent
from typing import Any, Final

import unreel
from unreel.api import keyword_types
from unreel.api.annotation import RuleKeys
from unreel.protocols.protocol import REVIEWED

HEAD: Final = """# Python reference

What `import unreel` promises, from its docstrings; [the page on Python](../python.md) tells how the parts work together.

"""
SECTIONS: Final = ("Args:", "Raises:")
SHORT: Final = 80
"""Letters of a signature that fit on a line."""


def write_page() -> str:
    """The whole page: verbs first, then words."""
    found = {name: getattr(unreel, name) for name in unreel.__all__}
    verbs = [name for name, value in found.items() if inspect.isfunction(value)]
    words = [name for name in found if name not in verbs]
    parts = [HEAD, "## Verbs", *(write_function(name, found[name]) for name in verbs)]
    parts += ["### Short for", write_aliases()]
    parts += ["## Words", *(write_word(name, found[name]) for name in words)]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def write_function(name: str, function: Any, *, level: int = 3) -> str:
    """A function: how it is called, what it promises, its parameters and errors."""
    sign = "async def" if inspect.iscoroutinefunction(function) else "def"
    head = f"{'#' * level} `{name}`\n\n```text\n{sign} {name.rpartition('.')[2]}{read_signature(function)}\n```"
    return f"{head}\n\n{write_docstring(inspect.getdoc(function) or '')}"


def read_signature(function: Any) -> str:
    """Parameters and result as its source writes them, one on a line where they are many."""
    source = dedent(inspect.getsource(function))
    (node,) = [
        each
        for each in ast.parse(source).body
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    given = ast.unparse(node.args)
    result = f" -> {ast.unparse(node.returns)}".replace("'", "") if node.returns else ""
    if len(given) + len(result) <= SHORT:
        return f"({given}){result}"
    parts = [re.sub(r"(?<=\S)=(?=\S)", " = ", part, count=1) for part in _split(given)]
    return "(\n" + indent(",\n".join(parts), "    ") + f",\n){result}"


def _split(given: str) -> Iterator[str]:
    """The parameters of `given`, at the commas that lie in no bracket."""
    depth, begun = 0, 0
    for place, letter in enumerate(given):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            yield given[begun:place].strip()
            begun = place + 1
    yield given[begun:].strip()


def write_docstring(text: str) -> str:
    """A docstring as Markdown: its sections become lists."""
    lines: list[str] = []
    section = False
    for line in text.splitlines():
        if line in SECTIONS:
            section = True
            lines += [f"*{line.rstrip(':')}*", ""]
        elif section and (entry := re.match(r"    (\*{0,2}\w+): (.*)", line)):
            lines.append(f"- `{entry[1]}`: {entry[2]}")
        elif section and line.startswith("        "):
            lines[-1] += f" {line.strip()}"
        else:
            section = section and not line
            lines.append(line)
    return "\n".join(lines).strip()


def write_aliases() -> str:
    """What stands behind the names that signatures use and that are no words."""
    notes = read_notes(keyword_types)
    lines = [f"- `{name}`: {_flow(notes[name])}" for name in ("Model", "Way")]
    lines += ["- `Models`: a `Model`, or several.", "- `Mode`: `'strict'` or `'lenient'`."]
    lines.append(f"- `REVIEWED`: `{REVIEWED}`.")
    for keys in (keyword_types.ReviewerKeys, keyword_types.RecipeKeys):
        names = ", ".join(f"`{name}`" for name in read_fields(keys))
        lines.append(f"- `{keys.__name__}`: {inspect.getdoc(keys).rstrip('.')}: {names}.")
    lines[-1] = lines[-1].removesuffix(".") + "; and those of `ReviewerKeys`."
    notes = read_notes(RuleKeys)
    rules = "; ".join(f"`{name}`, {_flow(note).rstrip('.')}" for name, note in notes.items())
    lines.append(f"- `RuleKeys`: settings of a consensus: {rules}.")
    lines.append("- `OnStep`: a function that takes the name of a part and its `Progress`.")
    return "\n".join(lines)


def _flow(text: str) -> str:
    return " ".join(text.split())


def write_word(name: str, word: Any) -> str:
    """A word of the domain: what it is, and what it holds."""
    if not isinstance(word, type):
        return f"### `{name}`\n\n{_say_alias(word)}"
    doc = "" if (word.__doc__ or "").startswith(f"{name}(") else inspect.getdoc(word) or ""
    members = _say_members(word)
    return "\n\n".join(filter(None, [f"### `{name}`", write_docstring(doc), members]))


def _say_alias(word: Any) -> str:
    if isinstance(word, types.UnionType):
        return "One of " + ", ".join(f"`{part.__name__}`" for part in word.__args__) + "."
    return f"A `{word.__supertype__.__name__}` of its own: {_note(word)}"


def _note(word: Any) -> str:
    return _flow(read_notes(import_module(word.__module__))[word.__name__])


def _say_members(word: type) -> str:
    if issubclass(word, enum.Enum):
        return "\n".join(f"- `{each.name}`: `{each.value}`" for each in word)
    lines = []
    if dataclasses.is_dataclass(word):
        notes: dict[str, str] = {}
        for each in reversed(word.__mro__[:-1]):
            notes |= read_notes(each)
        for field in dataclasses.fields(word):
            if not field.name.startswith("_"):
                note = _flow(notes.get(field.name, ""))
                lines.append(f"- `{field.name}: {_say_type(field.type)}`" + (note and f": {note}"))
    for name, member in inspect.getmembers_static(word):
        called = member.fget if isinstance(member, property) else member
        if name.startswith("_") or not inspect.isfunction(called):
            continue
        if called.__module__.partition(".")[0] != "unreel":
            continue
        doc = (inspect.getdoc(called) or "").partition("\n")[0]
        result = "" if isinstance(member, property) else _short_signature(called)
        lines.append(f"- `{name}{result}`: {doc}")
    return "\n".join(lines)


def _short_signature(function: Any) -> str:
    source = dedent(inspect.getsource(function))
    node = ast.parse(source).body[0]
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return "()"
    names = [part.partition(":")[0].partition("=")[0] for part in _split(ast.unparse(node.args))]
    return f"({', '.join(name for name in names if name not in {'self', 'cls', '*'})})"


def _say_type(annotation: Any) -> str:
    if isinstance(annotation, str):
        return annotation
    if isinstance(annotation, type) and not isinstance(annotation, types.GenericAlias):
        return annotation.__name__
    return re.sub(r"\b(?:\w+\.)+(?=\w)", "", str(annotation))


def read_notes(owner: Any) -> dict[str, str]:
    """The docstrings that stand below the fields of a class, or the names of a module."""
    body = _read_body(owner)
    return {
        name: inspect.cleandoc(ast.literal_eval(note.value))
        for field, note in pairwise(body)
        if (name := _target(field)) and isinstance(note, ast.Expr)
    }


def read_fields(owner: type) -> list[str]:
    """The fields that a class declares itself."""
    return [name for field in _read_body(owner) if (name := _target(field))]


def _read_body(owner: Any) -> list[ast.stmt]:
    tree = ast.parse(dedent(inspect.getsource(owner)))
    first = tree.body[0]
    return first.body if isinstance(owner, type) and isinstance(first, ast.ClassDef) else tree.body


def _target(field: ast.stmt) -> str:
    match field:
        case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
            return name
        case _:
            return ""
