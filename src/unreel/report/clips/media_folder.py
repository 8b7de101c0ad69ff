"""The clips beside a report: linked, copied, or left out."""

from dataclasses import dataclass, field
from typing import Final, Literal

from unreel.core.clip import Clip
from unreel.core.errors import MediaError
from unreel.core.writing import Folder
from unreel.engine.access import Access, local_copy

Media = Literal["link", "copy", "none"]
FOLDER: Final = "media"
# Servers tell browsers by the suffix what to play; no part of a stranger's file name is used.
_SUFFIXES: Final = {"mp4": "mp4", "matroska": "webm", "avi": "avi", "mpegts": "ts", "gif": "gif"}


@dataclass(slots=True)
class MediaFolder:
    """Puts each clip into the report's folder once, under the id of its bytes."""

    out: Folder
    media: Media
    access: Access
    sources: dict[str, str] = field(default_factory=dict)
    """Address in the page by clip."""
    missing: dict[str, str] = field(default_factory=dict)
    """Why a clip is not there, by clip."""

    def add(self, clip: Clip) -> None:
        """Put `clip` there, unless it is, and remember where."""
        if clip.id in self.sources or clip.id in self.missing:
            return
        if self.media == "none":
            self.missing[clip.id] = "the report was made without media"
        elif "://" in clip.location and self.media == "link":
            self.missing[clip.id] = "the clip lies in a store: make the report with --media copy"
        else:
            self._put(clip)

    def _put(self, clip: Clip) -> None:
        name = f"{FOLDER}/{clip.id}.{_SUFFIXES.get(clip.facts.container, 'bin')}"
        try:
            with local_copy(clip.location, self.access) as file:
                if self.media == "copy":
                    self.out.copy(file, name)
                else:
                    self.out.link(file.resolve(strict=True), name)
        except (OSError, MediaError) as error:
            self.missing[clip.id] = f"the clip could not be put beside the report: {error}"
            return
        self.sources[clip.id] = name
