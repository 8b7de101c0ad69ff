"""Implementation of `unreel arena published`, imported when it runs."""

import sys

from unreel.arena.published import NO_VERDICTS, RecomputedFigure, recalculate
from unreel.benchmarks.published.check import check
from unreel.cli.output import echo, print_json


def print_published_check(*, quiet: bool, as_json: bool) -> None:
    """Print the comparison, and end the program."""
    figures = recalculate()
    names = list(dict.fromkeys(one.check for one in figures))
    tables = {name: [one for one in figures if one.check == name] for name in names}
    same = _as_checked(figures)
    if as_json:
        checks = [
            {
                "name": name,
                "agree": sum(one.agrees for one in mine),
                "total": len(mine),
                "figures": [{"agrees": one.agrees, **_as_row(one)} for one in mine],
            }
            for name, mine in tables.items()
        ]
        print_json({"as_published_check": same, "no_verdicts": NO_VERDICTS, "checks": checks})
    else:
        for name, mine in tables.items():
            echo(f"{name}: {sum(one.agrees for one in mine)} of {len(mine)} as printed")
            for one in () if quiet else [one for one in mine if not one.agrees]:
                echo(f"  - {one.cell}: recalculated {one.arena}, printed {one.printed}")
        verdict = "as `unreel published check` has them" if same else "not all as checked"
        echo(f"{len(figures)} figures through the arena's ranking, {verdict}")
    sys.exit(0 if same else 1)


def _as_row(one: RecomputedFigure) -> dict[str, object]:
    return {name: getattr(one, name) for name in ("cell", "printed", "arena", "interval")}


def _as_checked(figures: tuple[RecomputedFigure, ...]) -> bool:
    """Return whether figures that differ from print equal those of the check, with the same values."""
    found = {(one.check, one.cell): one.arena for one in figures if not one.agrees}
    known = {
        (each.name, misprint.cell): misprint.calculated
        for each in check()
        if each.name not in NO_VERDICTS
        for misprint in each.misprints
        if misprint.calculated is not None
    }
    return found == known
