"""Write docs/errata.md from the checks of the papers' figures.

    python docs/make_errata.py

A test compares the page with the result of `write_page`.
"""

from pathlib import Path
from typing import Final

from unreel.benchmarks.published.check import check_published_numbers
from unreel.benchmarks.published.misprints import PrintedNumberCheckResult

PAGE: Final = Path(__file__).with_name("errata.md")
HEAD: Final = """# Errata of the printed tables

`unreel published check` recomputes the figures of the three papers from their printed counts. DTR is DeepTraceReward, VRT is Video Reality Test,
VRB is VideoRealBench. `python docs/make_errata.py` writes this page. A cause is our reading of the arithmetic; the authors have not confirmed it.

| figures | reproduced | formula |
|---|---|---|"""


def write_page() -> str:
    """Return the page: one table of all checks, then the misprints of each."""
    checks = check_published_numbers()
    rows = [
        f"| {check.name} | {check.reproduced} of {check.total} | {_escape(check.formula)} |"
        for check in checks
    ]
    parts = ["\n".join([HEAD, *rows]), *(_write_check(check) for check in checks)]
    return "\n\n".join(filter(None, parts)) + "\n"


def _write_check(check: PrintedNumberCheckResult) -> str:
    lines = [f"- {_escape(str(misprint))}" for misprint in check.misprints]
    return f"## {check.name}\n\n" + "\n".join(lines) if lines else ""


def _escape(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*")


if __name__ == "__main__":
    PAGE.write_text(write_page(), encoding="utf-8")
