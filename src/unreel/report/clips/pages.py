"""Pages of a report's clips: each a list, and the data of the clip browser.

A page opened from disk cannot fetch files, so the report loads a page of clips in a hidden frame,
which posts its data: this works from disk and from a web server; without JavaScript the pages are
plain lists.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from unreel.core.identity import digest
from unreel.pages.page import render, whole_page

FOLDER: Final = "clips"
CHUNK: Final = 500
"""Clips of one page."""
RIGHT, WRONG, UNREADABLE, FAILED = range(4)
STATUSES: Final = {RIGHT: "right", WRONG: "wrong", UNREADABLE: "unreadable", FAILED: "failed"}
_SHORT_DIGEST: Final = 12
_STYLES: Final = ("unreel.report:report.css",)
_SCRIPTS: Final = ("unreel.report.clips:page.js",)


def page_file(number: int) -> str:
    """Return the file name of the page of that number, counted from 0."""
    return f"{FOLDER}/{number + 1:04d}.html"


@dataclass(frozen=True, slots=True, kw_only=True)
class PaginatedClips:
    """All clips in pages."""

    names: Sequence[str]
    """Of those who answered."""
    creators: Sequence[str]
    kinds: Sequence[str]
    lines: Sequence[list[Any]]
    """Of the index: id, name, creator (-1: real), kinds of trace, and who said what."""

    @property
    def n_pages(self) -> int:
        """Return the number of pages."""
        return -(-len(self.lines) // CHUNK)

    def holds(self, number: int) -> list[list[int]]:
        """Return the filter data of the page: creators, kinds of clips, and answers."""
        lines = self._lines(number)
        return [
            sorted({creator for _, _, creator, _, _ in lines}),
            sorted({kind for _, _, _, kinds, _ in lines for kind in kinds}),
            sorted({who * len(STATUSES) + how for *_, said in lines for who, how in said}),
        ]

    def made(self, number: int, packed: str) -> str:
        """Return the identity of the page, derived from all of its content."""
        words = [self.names, self.creators, self.kinds, self._lines(number)]
        return digest(json.dumps(words), packed)[:_SHORT_DIGEST]

    def page(self, number: int, packed: str) -> str:
        """Return page `number` as an HTML document; `packed` holds the details of the page's clips."""
        lines, first = self._lines(number), number * CHUNK + 1
        beside = {"before": number, "after": (number + 2) * (number + 1 < self.n_pages)}
        body = render(
            "unreel.report.clips:page.html",
            title=f"Clips {first:,} to {first + len(lines) - 1:,} of {len(self.lines):,}",
            names=self.names,
            rows=[self._row(line) for line in lines],
            **{way: f"{at:04d}.html" if at else "" for way, at in beside.items()},
        )
        return whole_page(
            title="unreel report: clips",
            body=body,
            styles=_STYLES,
            scripts=_SCRIPTS,
            data={
                "report-page": {
                    "made": self.made(number, packed),
                    "clips": lines,
                    "packed": packed,
                }
            },
        )

    def _lines(self, number: int) -> Sequence[list[Any]]:
        return self.lines[number * CHUNK : (number + 1) * CHUNK]

    def _row(self, line: list[Any]) -> list[str]:
        _, name, creator, _, said = line
        told = {who: STATUSES[how] for who, how in said}
        made_by = "real" if creator == -1 else self.creators[creator]
        return [name, made_by, *(told.get(who, "") for who in range(len(self.names)))]
