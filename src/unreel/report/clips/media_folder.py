"""The clips next to a report: linked, copied, or left out."""

from dataclasses import dataclass, field
from typing import Final, Literal

from unreel.benchmarks.unique_names import NameDigests
from unreel.core.clip import Clip
from unreel.core.errors import MediaError
from unreel.core.output_files import OutputDirectory
from unreel.engine.storage_access import StorageAccess, local_copy

Media = Literal["link", "copy", "none"]
FOLDER: Final = "media"
# Servers tell browsers by the suffix what to play; no part of a stranger's file name is used.
_SUFFIXES: Final = {"mp4": "mp4", "matroska": "webm", "avi": "avi", "mpegts": "ts", "gif": "gif"}


@dataclass(slots=True)
class MediaFolder:
    """Puts each clip into the report's folder once, under the id of its bytes."""

    out: OutputDirectory
    media: Media
    access: StorageAccess
    placed: set[str] = field(default_factory=set)
    """Ids of the clips that are there."""
    n_missing: int = 0
    """Number of clips that could not be put there."""
    _missing: NameDigests = field(default_factory=NameDigests)

    def add(self, clip: Clip) -> tuple[str | None, str]:
        """Put `clip` there, unless it is; return its address in the page, or `None` and the reason."""
        name = f"{FOLDER}/{clip.id}.{_SUFFIXES.get(clip.facts.container, 'bin')}"
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
            with local_copy(clip.location, self.access) as file:
                if self.media == "copy":
                    self.out.copy(file, name)
                else:
                    self.out.link(file.resolve(strict=True), name)
        except (OSError, MediaError) as error:
            return f"the clip could not be linked or copied: {error}"
        return ""
