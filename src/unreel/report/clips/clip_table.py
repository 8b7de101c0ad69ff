"""The list of clips as a table, for a file."""

from collections.abc import Iterator

from unreel.core.sheet import csv_text
from unreel.report.boards.downloads import distinct_names
from unreel.report.clips.browser import ClipBrowser
from unreel.report.clips.pages import STATUSES


def clips_csv(browser: ClipBrowser) -> str:
    """Return a line for each clip of a browser, with a column for each reviewer; no line is held as an object."""
    entrants = [entrant["name"] for entrant in browser.index["entrants"]]
    columns = distinct_names(["Clip", "Made by", *entrants])
    return csv_text(columns, _iter_clip_rows(browser, columns))


def _iter_clip_rows(browser: ClipBrowser, columns: list[str]) -> Iterator[dict[str, str]]:
    creators, n_entrants = browser.index["creators"], len(browser.index["entrants"])
    for _, clip, creator, _, answers in browser.lines:
        made_by = "real" if creator == -1 else creators[creator]
        told = {place: STATUSES[status] for place, status in answers}
        outcomes = [told.get(place, "") for place in range(n_entrants)]
        yield dict(zip(columns, (clip, made_by, *outcomes), strict=True))
