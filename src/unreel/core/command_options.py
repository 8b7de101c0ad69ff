"""Settings classes whose fields are options of commands: how a field is typed, and its docstring.

A command takes its options from such a class (`unreel.cli.options.settings_options`): the name, type,
default and docstring of each field are the option's.
"""

import ast
import inspect
import sys
from dataclasses import dataclass
from functools import cache
from itertools import pairwise


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """How a field is typed on a command line, where its name and type do not say it."""

    name: str = ""
    """Name of the option, as in `--deadline`; by default that of the field."""
    metavar: str | None = None
    low: float | None = None
    high: float | None = None
    kind: str = ""
    """Kind of value with rules of its own: a kind of path, or a name of `unreel.cli.options.KINDS`."""
    default_text: str = ""
    """Text that the help shows instead of the default."""
    is_argument: bool = False
    is_required: bool = False
    """Whether a repeatable option must be given."""


ARGUMENT = Option(is_argument=True)
POSITIVE = Option(low=1)
FILE = Option(kind="file")
"""Path of an existing file."""
EXISTING = Option(kind="existing")
"""Path of an existing file or folder."""
NEW_FILE = Option(kind="new file")
FOLDER = Option(kind="folder")
"""Path of a folder, which may not exist yet."""


def read_field_docstrings(owner: type) -> dict[str, str]:
    """Return the docstrings below the fields of a class and of its base classes, by field name."""
    notes: dict[str, str] = {}
    for cls in reversed(owner.__mro__):
        if cls.__module__.partition(".")[0] == "unreel":
            body = _parse_classes(cls.__module__)[cls.__name__].body
            notes |= {
                field.target.id: inspect.cleandoc(note.value.value)
                for field, note in pairwise(body)
                if isinstance(field, ast.AnnAssign)
                and isinstance(field.target, ast.Name)
                and isinstance(note, ast.Expr)
                and isinstance(note.value, ast.Constant)
                and isinstance(note.value.value, str)
            }
    return notes


@cache
def _parse_classes(module: str) -> dict[str, ast.ClassDef]:
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
