"""Files of a report's clip browser: pages with lists and data of clips, and the media folder.

A page opened from disk cannot fetch files, so the report loads a page of clips in a hidden frame,
which posts its data: this works from disk and from a web server; without JavaScript the pages are
plain lists.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from unreel.benchmarks.unique_names import SeenNameSet
from unreel.core.clip import Clip
from unreel.core.content_ids import digest
from unreel.core.errors import MediaError
from unreel.core.output_files import OutputDirectory
from unreel.engine.storage_access import ClipAccessSettings, provide_local_clip_file
from unreel.pages.html_page import build_html_page, render_template

Media = Literal["link", "copy", "none"]
MEDIA_FOLDER = "media"
# Web servers choose the media type by the suffix; no part of an untrusted file name is used.
_SUFFIXES = {"mp4": "mp4", "matroska": "webm", "avi": "avi", "mpegts": "ts", "gif": "gif"}


@dataclass(slots=True)
class ReportMediaFolder:
    """Media folder of a report, which contains each clip once, named by the clip id."""

    out: OutputDirectory
    media: Media
    access: ClipAccessSettings
    placed: set[str] = field(default_factory=set)
    """Ids of the clips in the folder."""
    n_missing: int = 0
    """Number of clips that could not be linked or copied."""
    _missing: SeenNameSet = field(default_factory=SeenNameSet)

    def add(self, clip: Clip) -> tuple[str | None, str]:
        """Link or copy `clip` into the folder; return its path from the page, or `None` and the reason."""
        name = f"{MEDIA_FOLDER}/{clip.id}.{_SUFFIXES.get(clip.facts.container, 'bin')}"
        reason = "" if clip.id in self.placed else self._put(clip, name)
        if reason:
            self.n_missing += self._missing.add(clip.id)
            return None, reason
        self.placed.add(clip.id)
        return name, ""

    def _put(self, clip: Clip, name: str) -> str:
        if self.media == "none":
            return "the report was made without media"
        if "://" in clip.location and self.media == "link":
            return "the clip is in an object store: make the report with --media copy"
        try:
            with provide_local_clip_file(clip.location, self.access) as file:
                if self.media == "copy":
                    self.out.copy(file, name)
                else:
                    self.out.link(file.resolve(strict=True), name)
        except (OSError, MediaError) as error:
            return f"the clip could not be linked or copied: {error}"
        return ""


FOLDER = "clips"
CHUNK = 500
"""Number of clips per page."""
RIGHT, WRONG, UNREADABLE, FAILED = range(4)
STATUSES = {RIGHT: "right", WRONG: "wrong", UNREADABLE: "unreadable", FAILED: "failed"}
_SHORT_DIGEST = 12
_STYLES = ("unreel.report:report.css",)
_SCRIPTS = ("unreel.report.clips:page.js",)


def format_clip_page_path(number: int) -> str:
    """Return the file name of a page of clips; `number` is counted from 0."""
    return f"{FOLDER}/{number + 1:04d}.html"


@dataclass(frozen=True, slots=True, kw_only=True)
class PaginatedClips:
    """Clip list of a report, divided into pages of `CHUNK` clips."""

    names: Sequence[str]
    """Names of the entrants."""
    creators: Sequence[str]
    kinds: Sequence[str]
    lines: Sequence[list[Any]]
    """Lines of the index: id, name, creator (-1: real), kinds of trace, and answers."""

    @property
    def n_pages(self) -> int:
        return -(-len(self.lines) // CHUNK)

    def holds(self, number: int) -> list[list[int]]:
        """Return the filter values of a page: creators, trace categories and grades of answers."""
        lines = self._lines(number)
        return [
            sorted({creator for _, _, creator, _, _ in lines}),
            sorted({kind for _, _, _, kinds, _ in lines for kind in kinds}),
            sorted({i * len(STATUSES) + grade for *_, answers in lines for i, grade in answers}),
        ]

    def made(self, number: int, packed: str) -> str:
        """Return a short hash of the content of page `number`."""
        content = [self.names, self.creators, self.kinds, self._lines(number)]
        return digest(json.dumps(content), packed)[:_SHORT_DIGEST]

    def page(self, number: int, packed: str) -> str:
        """Return page `number` as an HTML document; `packed` holds the details of the page's clips."""
        lines, first = self._lines(number), number * CHUNK + 1
        neighbours = {"before": number, "after": (number + 2) * (number + 1 < self.n_pages)}
        body = render_template(
            "unreel.report.clips:page.html",
            title=f"Clips {first:,} to {first + len(lines) - 1:,} of {len(self.lines):,}",
            names=self.names,
            rows=[self._row(line) for line in lines],
            **{key: f"{n:04d}.html" if n else "" for key, n in neighbours.items()},
        )
        return build_html_page(
            title="unreel report: clips",
            body=body,
            styles=_STYLES,
            scripts=_SCRIPTS,
            data={
                "report-page": {"made": self.made(number, packed), "clips": lines, "packed": packed}
            },
        )

    def _lines(self, number: int) -> Sequence[list[Any]]:
        return self.lines[number * CHUNK : (number + 1) * CHUNK]

    def _row(self, line: list[Any]) -> list[str]:
        _, name, creator, _, answers = line
        grades = {entrant: STATUSES[status] for entrant, status in answers}
        made_by = "real" if creator == -1 else self.creators[creator]
        return [name, made_by, *(grades.get(entrant, "") for entrant in range(len(self.names)))]
