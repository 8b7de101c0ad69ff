"""Interface of a creator, its request and its result. `unreel.testing.creators` tests creators."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Literal, Protocol

from unreel.core.failure import Failure


class CreatorInput(StrEnum):
    """Kind of input from which a creator makes a clip: image, text or both."""

    IMAGE_AND_TEXT = "image+text"
    IMAGE = "image"
    TEXT = "text"


Given = Literal["brief", "source", "name"]
"""What a creator is shown of a scene: words and first frame; the real clip itself, for controls and injected traces; or
its name alone, where its clips lie ready."""


class ClipClass(StrEnum):
    """Class of a creator's clips: generated, or a real clip that was edited as a control."""

    GENERATED = "generated"
    CONTROL = "control"
    """Real clips, changed: who calls them generated is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipBrief:
    """Request to a creator for one clip of a real clip's scene, given by first frame, text or both."""

    id: str
    """Of the scene; with creator, setting and seed it names the clip."""
    setting: CreatorInput
    text: str = ""
    """Content of the clip; a fixed sentence for the setting `image`."""
    first_frame: bytes | None = field(default=None, repr=False)
    """As PNG, where the setting has an image."""
    source: Path | None = None
    """The real clip itself, for controls and injected traces: no generator is shown it."""
    width: int
    height: int
    duration_us: int
    seed: int
    file_stem: str = ""
    """Name of a file for this scene, without folder and ending; the `id` if it is empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedClip:
    """One clip from a creator, with the model, parameters and cost of its generation."""

    file: Path
    """In the folder of its workplace."""
    model: str
    """Its model, with version or checkpoint as far as reported."""
    parameters: Mapping[str, str | int | float | bool]
    """All that decides its bytes besides the brief."""
    cost_usd: Decimal | None = None
    """`None` if unknown; 0 if it costs nothing."""
    traces: str = ""
    """Known faults, as JSON in the schema of `core.trace`; "" if unknown."""


class CreatorContext(Protocol):
    """Resources of a creator for one brief: a folder, notes that survive a restart, safe downloads."""

    @property
    def folder(self) -> Path:
        """Return the directory for this brief only; its contents are deleted after the clip was accepted."""
        ...

    def recall(self, what: str) -> str | None:
        """Return the note stored under the key `what` for this brief, also by an earlier process."""
        ...

    def note(self, what: str, text: str) -> None:
        """Store `text` as a note under the key `what`, such as a paid job's id, on disk before returning."""
        ...

    async def fetch(self, url: str, into: Path) -> Failure | None:
        """Download the untrusted `url` into `into`, limited in size, time and address; return any failure."""
        ...


class Creator(Protocol):
    """Interface of a creator, which makes clips; one event loop may make many clips concurrently."""

    @property
    def name(self) -> str:
        """Return the creator's stable name: equal names mean equal weights and equal parameters."""
        ...

    @property
    def side(self) -> ClipClass:
        """Return the class of the creator's clips: generated, or edited real clips as a control."""
        ...

    @property
    def settings(self) -> frozenset[CreatorInput]:
        """Return the inputs that the creator supports."""
        ...

    async def make(self, brief: ClipBrief, workplace: CreatorContext) -> GeneratedClip | Failure:
        """Make one clip, or return a failure. It raises nothing except a cancellation."""
        ...

    async def close(self) -> None:
        """Release connections and weights; a second call does nothing."""
        ...
