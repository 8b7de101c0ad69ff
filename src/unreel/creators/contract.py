"""Interface of a creator, its request and its result. `unreel.testing.creators` tests creators."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import ClassVar, Literal, Protocol

from unreel.core.content_ids import digest
from unreel.core.failure import Failure
from unreel.core.safe_names import make_safe_file_name
from unreel.core.settings import EnvironmentSettings
from unreel.recipes.validation import RecipeSection


class CreatorInput(StrEnum):
    """Kind of input from which a creator makes a clip: image, text or both."""

    IMAGE_AND_TEXT = "image+text"
    IMAGE = "image"
    TEXT = "text"


Given = Literal["brief", "source", "name"]
"""Input that a creator gets for a scene: `brief` (text and first frame), `source` (the real clip, for controls and
injected traces) or `name` (only the scene's name, for clips that already exist)."""


class ClipClass(StrEnum):
    """Class of a creator's clips: generated, or a real clip that was edited as a control."""

    GENERATED = "generated"
    CONTROL = "control"
    """Edited real clips: the answer "generated" is wrong for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipBrief:
    """Request to a creator for one clip of a real clip's scene, given by first frame, text or both."""

    id: str
    """Identifier of the scene; with creator, setting and seed it identifies the clip."""
    setting: CreatorInput
    text: str = ""
    """Content of the clip; a fixed sentence for the setting `image`."""
    first_frame: bytes | None = field(default=None, repr=False)
    """First frame as PNG, if the setting includes an image."""
    source: Path | None = None
    """Path of the real clip, for controls and injected traces; generators do not get it."""
    width: int
    height: int
    duration_us: int
    seed: int
    file_stem: str = ""
    """Name of a file for this scene, without folder and suffix; the `id` if it is empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedClip:
    """One clip from a creator, with the model, parameters and cost of its generation."""

    file: Path
    """Path of the clip, in the folder of its `CreatorContext`."""
    model: str
    """Name of the model, with version or checkpoint if reported."""
    parameters: Mapping[str, str | int | float | bool]
    """All parameters that determine the clip's bytes, besides the brief."""
    cost_usd: Decimal | None = None
    """Cost in USD; `None` if unknown, 0 if it costs nothing."""
    traces: str = ""
    """Known traces, as JSON in the schema of `core.trace`; "" if unknown."""


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
    def settings(self) -> frozenset[CreatorInput]: ...

    async def make(self, brief: ClipBrief, context: CreatorContext) -> GeneratedClip | Failure:
        """Make one clip, or return a failure. It raises nothing except a cancellation."""
        ...

    async def close(self) -> None:
        """Release connections and weights; a second call does nothing."""
        ...


_DIGITS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatorEnvironment:
    """Context in which a creator is opened: environment settings, trust, and the requested inputs."""

    settings: EnvironmentSettings
    trusted: bool = False
    """Whether the benchmark's clips are opened in this process, without a sandbox."""
    inputs: tuple[CreatorInput, ...] = ()
    """Requested inputs: one clip per scene is made for each."""


class CreatorKeys(RecipeSection):
    """Recipe keys of one kind of creator: the fields are the keys, and `open` opens the creator."""

    side: ClassVar[ClipClass] = ClipClass.GENERATED
    places: ClassVar[frozenset[str]] = frozenset()
    """Names of the keys with a path, relative to the recipe. A location is not part of the identity."""
    besides: ClassVar[frozenset[str]] = frozenset()
    """Names of other keys that do not affect a clip's bytes: timeouts, budget, prices."""
    at_once: ClassVar[int] = 2
    """Maximum number of clips that are generated concurrently."""

    @property
    def can(self) -> frozenset[CreatorInput]:
        return frozenset(CreatorInput)

    @property
    def usual(self) -> tuple[CreatorInput, ...]:
        """Return the inputs that the creator gets if the recipe names none."""
        return (CreatorInput.IMAGE_AND_TEXT,)

    @property
    def given(self) -> Given:
        """Return what the creator gets for a scene: the brief, the real clip, or only the scene's name."""
        return "source" if self.side is ClipClass.CONTROL else "brief"

    def label(self, title: str) -> str:
        """Return the readable part of the creator's stable name; `title` by default."""
        return title

    def identity(self) -> str:
        """Return all settings, besides the brief, that determine the bytes of the clips, as text."""
        named = self.model_dump(
            mode="json", exclude_defaults=True, exclude=set(self.places | self.besides)
        )
        return json.dumps(named, sort_keys=True)

    def stable_name(self, kind: str, title: str) -> str:
        """Return the creator's stable name, which is equal for equal label and identity on every machine."""
        label = self.label(title)
        return (
            f"{kind}:{make_safe_file_name(label)}-{digest(kind, label, self.identity())[:_DIGITS]}"
        )

    def resolve_paths(self, base: Path) -> dict[str, str]:
        """Return the path keys with their paths resolved against the recipe directory `base`."""
        paths = {key: getattr(self, key) for key in self.places & self.model_fields_set}
        return {key: str(base / Path(path).expanduser()) for key, path in paths.items()}

    def open(self, name: str, environment: CreatorEnvironment) -> Creator:
        """Open the creator with the stable name `name`."""
        raise NotImplementedError
