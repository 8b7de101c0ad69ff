"""Names and docstrings that break the rules of CONTRIBUTING.md do not become more."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TREES = [
    ast.parse(path.read_text(encoding="utf-8")) for path in (ROOT / "src" / "unreel").rglob("*.py")
]
GLOSSARY = {
    word.title().replace(" ", "")
    for word in re.findall(
        r"^\| ([a-z ]+) \| [A-Z]", (ROOT / "docs" / "glossary.md").read_text("utf-8"), re.MULTILINE
    )
}
OUTCOMES = {"Real", "Generated", "Unparsed", "Unmeasured", "Rejected", "Coverage", "Metric"}
PARTICIPLE = re.compile(r"[A-Z][a-z]+(?:ed|ung|old|aid|ept|eard|ade|een|oken|own|ing)")
QUESTION = re.compile(r"(?:What|How|Where|Who|Whose|Whether|Which|Why)\b")
DIALECT = re.compile(
    r"\b(?:told|tells?|whoever|nobody|somebody|lies|stands|anew|in words|by itself|so many|so much"
    r"|what is|what was|as it is)\b",
    re.IGNORECASE,
)
LIMITS = {
    "one-word classes": 13,
    "participles as classes": 0,
    "classes defined twice": 1,
    "docstrings that begin with a question": 0,
    "dialect in docstrings": 5,
    "dialect in help": 0,
}
"""Present counts. Lower a limit when its count falls; never raise one."""


def _classes() -> list[str]:
    return [
        node.name.lstrip("_")
        for tree in TREES
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    ]


def _is_one_word(name: str) -> bool:
    return len(re.findall(r"[A-Z][a-z0-9]*", name)) == 1 and name not in GLOSSARY | OUTCOMES


def _docstrings() -> Iterator[str]:
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for tree in TREES:
        for node in ast.walk(tree):
            if isinstance(node, kinds):
                yield ast.get_docstring(node) or ""


def _helps() -> Iterator[str]:
    for tree in TREES:
        for node in ast.walk(tree):
            if isinstance(node, ast.keyword) and node.arg in {"help", "short_help", "epilog"}:
                yield from (
                    part.value
                    for part in ast.walk(node.value)
                    if isinstance(part, ast.Constant) and isinstance(part.value, str)
                )


def _count() -> dict[str, int]:
    names = _classes()
    one_word = [name for name in names if _is_one_word(name)]
    docstrings = list(_docstrings())
    return {
        "one-word classes": len(one_word),
        "participles as classes": sum(PARTICIPLE.fullmatch(name) is not None for name in one_word),
        "classes defined twice": sum(n > 1 for n in Counter(names).values()),
        "docstrings that begin with a question": sum(
            QUESTION.match(text) is not None for text in docstrings
        ),
        "dialect in docstrings": sum(len(DIALECT.findall(text)) for text in docstrings),
        "dialect in help": sum(len(DIALECT.findall(text)) for text in _helps()),
    }


COUNTS = _count()


@pytest.mark.parametrize("rule", LIMITS)
def test_names_and_sentences_become_plainer_and_never_less_plain(rule: str) -> None:
    assert COUNTS[rule] <= LIMITS[rule], "see docs/glossary.md and CONTRIBUTING.md"
