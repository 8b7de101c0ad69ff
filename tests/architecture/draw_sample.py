"""Draw names, help lines and docstrings at random, for a reader who grades how plain they are.

    python tests/architecture/draw_sample.py --seed 26
    python tests/architecture/draw_sample.py --seed 26 --answers

The reader guesses the meaning of each name alone, then compares it with `--answers`. Grades: 2 right, 1 in part,
0 wrong for names; 2 plain, 1 needs a second reading, 0 puzzling for help lines and docstrings.
"""

import argparse
import ast
import random
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "unreel"


def _trees() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(SOURCE.rglob("*.py")):
        yield (
            path.relative_to(SOURCE).as_posix(),
            ast.parse(path.read_text(encoding="utf-8")),
        )


def draw_names(rng: random.Random) -> list[tuple[str, str]]:
    """Return 20 classes, 20 functions and 20 modules, each with its docstring."""
    classes, functions, modules = [], [], []
    for path, tree in _trees():
        if not path.endswith("__init__.py"):
            modules.append((path, ast.get_docstring(tree) or ""))
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                classes.append((f"class {node.name}", f"{path}: {ast.get_docstring(node)}"))
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                meaning = ast.get_docstring(node) or "\n" + ast.unparse(node)
                functions.append((f"def {node.name}", f"{path}: {meaning}"))
    return [each for kind in (classes, functions, modules) for each in rng.sample(kind, 20)]


def draw_helps(rng: random.Random) -> list[tuple[str, str]]:
    """Return 40 help texts of options and commands."""
    found = []
    for path, tree in _trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                option = next((a.value for a in node.args if isinstance(a, ast.Constant)), "")
                found += [
                    (f"{option}: {keyword.value.value}", path)
                    for keyword in node.keywords
                    if keyword.arg == "help" and isinstance(keyword.value, ast.Constant)
                ]
    return rng.sample(found, 40)


def draw_docstrings(rng: random.Random) -> list[tuple[str, str]]:
    """Return 40 docstrings of functions, classes and modules."""
    found = []
    for path, tree in _trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                name = getattr(node, "name", "module")
                if text := ast.get_docstring(node):
                    found.append((f"{name}: {text}", path))
    return rng.sample(found, 40)


def main() -> None:
    """Print the sample."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=26)
    parser.add_argument("--answers", action="store_true", help="Print where each is from.")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    samples = {
        "Names": draw_names(rng),
        "Help": draw_helps(rng),
        "Docstrings": draw_docstrings(rng),
    }
    for title, sample in samples.items():
        print(f"\n## {title}\n")
        for number, (shown, answer) in enumerate(sample, 1):
            print(f"{number}. {shown}" + (f"\n   -> {answer}" if options.answers else ""))


if __name__ == "__main__":
    main()
