"""Base class for the recipe keys of a kind of creator."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from unreel.core.content_ids import digest
from unreel.core.safe_names import make_safe_file_name
from unreel.core.settings import EnvironmentSettings
from unreel.creators.contract import ClipClass, Creator, CreatorInput, Given
from unreel.recipes.validation import RecipeSection

_DIGITS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatorEnvironment:
    """Context in which a creator is opened: environment settings, trust, and the requested inputs."""

    settings: EnvironmentSettings
    trusted: bool = False
    """Whether the benchmark's clips are opened in this process, without a sandbox."""
    asked: tuple[CreatorInput, ...] = ()
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
        """Return the inputs that the creator supports."""
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

    def beside(self, base: Path) -> dict[str, str]:
        """Return the path keys with their paths resolved against the recipe directory `base`."""
        paths = {key: getattr(self, key) for key in self.places & self.model_fields_set}
        return {key: str(base / Path(path).expanduser()) for key, path in paths.items()}

    def open(self, name: str, env: CreatorEnvironment) -> Creator:
        """Open the creator with the stable name `name`."""
        raise NotImplementedError
