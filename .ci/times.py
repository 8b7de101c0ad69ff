#!/usr/bin/env python3
"""Prints where the last `.ci/run` spent its time: wall and processor seconds by step, test folder and test file.

    python .ci/times.py [--most N] [--markdown]

Steps come from .venv-ci/steps.tsv, tests from the JUnit reports in .venv-ci/junit. The processor time of a test includes
the processes that it awaited; that of a step includes every process that the step awaited. The wall seconds of a folder are the
sum over its tests, which run side by side.
"""

import argparse
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree as ET

FOLDER = Path(__file__).parents[1] / ".venv-ci"


@dataclass(frozen=True, slots=True)
class TimeRow:
    """Time that one step, folder or file took."""

    name: str
    wall_s: float
    cpu_s: float
    n_tests: int | None = None


def main() -> int:
    """Print one table for steps, one for folders and one for files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--most", type=int, default=25, help="number of files to print (25)")
    parser.add_argument("--markdown", action="store_true", help="print Markdown tables")
    options = parser.parse_args()
    if not (FOLDER / "steps.tsv").exists():
        print("no times yet: run .ci/run first", file=sys.stderr)
        return 1
    steps = list(read_steps((FOLDER / "steps.tsv").read_text(encoding="utf-8")))
    tests = list(read_tests(sorted((FOLDER / "junit").glob("*.xml"))))
    files = add_up(tests)
    folders = add_up(
        TimeRow(re.sub(r"/[^/]*$", "", test.name), test.wall_s, test.cpu_s) for test in tests
    )
    whole = TimeRow("all", sum(row.wall_s for row in steps), sum(row.cpu_s for row in steps))
    print_table("step", [*steps, whole], markdown=options.markdown)
    print_table("folder", folders, markdown=options.markdown)
    print_table(
        f"file, the {options.most} largest", files[: options.most], markdown=options.markdown
    )
    return 0


def read_steps(text: str) -> Iterator[TimeRow]:
    """Yield the time between the starts of each two steps.

    Args:
        text: Lines of name, clock in seconds, and user and system time as bash's `times` prints them.
    """
    lines = [line.split("\t") for line in text.splitlines()]
    for (name, start, cpu), (_, end, cpu_at_end) in pairwise(lines):
        yield TimeRow(name, float(end) - float(start), read_cpu_s(cpu_at_end) - read_cpu_s(cpu))


def read_cpu_s(text: str) -> float:
    """Return the sum of durations such as `1m2.5s 0m3.1s`."""
    parts = re.findall(r"(\d+)m([\d.,]+)s", text)
    return sum(60 * int(minutes) + float(seconds.replace(",", ".")) for minutes, seconds in parts)


def read_tests(reports: Iterable[Path]) -> Iterator[TimeRow]:
    """Yield each test of JUnit reports under the path of its file."""
    for report in reports:
        for case in ET.parse(report).iter("testcase"):  # noqa: S314  pytest wrote it
            module = re.match(r"tests(\.\w+)*?\.test_\w+", case.get("classname", ""))
            name = f"{module[0].replace('.', '/')}.py" if module else report.stem
            cpu = case.find("properties/property[@name='cpu_s']")
            cpu_s = 0.0 if cpu is None else float(cpu.get("value", 0))
            yield TimeRow(name, float(case.get("time", 0)), cpu_s)


def add_up(rows: Iterable[TimeRow]) -> list[TimeRow]:
    """Return one row for each name, the largest processor time first."""
    groups: defaultdict[str, list[TimeRow]] = defaultdict(list)
    for row in rows:
        groups[row.name].append(row)
    sums = [
        TimeRow(name, sum(row.wall_s for row in same), sum(row.cpu_s for row in same), len(same))
        for name, same in groups.items()
    ]
    return sorted(sums, key=lambda row: -row.cpu_s)


def print_table(title: str, rows: list[TimeRow], *, markdown: bool) -> None:
    """Print `rows` as aligned text or as Markdown."""
    header = (title, "wall s", "processor s", "tests")
    lines = [
        (row.name, f"{row.wall_s:.0f}", f"{row.cpu_s:.0f}", str(row.n_tests or "")) for row in rows
    ]
    if markdown:
        print("\n".join(f"| {' | '.join(line)} |" for line in (header, ("---",) * 4, *lines)))
    else:
        width = max(len(line[0]) for line in (header, *lines))
        for name, *numbers in (header, *lines):
            print(f"{name:<{width}}", *(f"{number:>12}" for number in numbers))
    print()


if __name__ == "__main__":
    sys.exit(main())
