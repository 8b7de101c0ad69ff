"""`[[creator]]` sections of a recipe: name, kind, inputs and further keys of each creator."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, model_validator

from unreel.core.errors import InvalidSettingError
from unreel.core.registry import LazyImport, NamedObjectRegistry
from unreel.core.settings import EnvironmentSettings
from unreel.creators.contract import (
    ClipClass,
    Creator,
    CreatorEnvironment,
    CreatorInput,
    CreatorKeys,
    Given,
)
from unreel.recipes.validation import Line, RecipeSection, Seed, Text, validate_recipe_sections


class FrozenCreatorConfig(CreatorKeys):
    """`kind = "frozen"`: a creator whose clips are already in the benchmark."""

    creator: Text = ""
    """Name of the creator in the benchmark; by default its name on the board."""

    def label(self, title: str) -> str:
        return self.creator or title

    def identity(self) -> str:
        return ""

    def open(self, name: str, environment: CreatorEnvironment) -> Creator:  # noqa: ARG002  of the contract
        raise InvalidSettingError(
            name,
            "the clips are in the benchmark, and no more can be made",
            "Name another kind, or exclude it from generation",
        )


FROZEN = "frozen"
"""Kind of a creator whose clips are in the benchmark and are not generated."""

CREATORS: NamedObjectRegistry[type[CreatorKeys]] = NamedObjectRegistry(
    "kind of creator",
    {
        "degrade": LazyImport("unreel.creators.edited_clips:DegradeCreatorConfig"),
        "encoded": LazyImport("unreel.arena.run.injection_creators:EncodedControlKeys"),
        "endpoint": LazyImport("unreel.creators.endpoint:EndpointCreatorConfig"),
        "folder": LazyImport("unreel.creators.folder:FolderCreatorConfig"),
        FROZEN: LazyImport("unreel.creators.config:FrozenCreatorConfig"),
        "inject": LazyImport("unreel.arena.run.injection_creators:InjectCreatorKeys"),
    },
    group="unreel.creators",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatorFactory:
    """Factory that opens a creator: stable name, constructor and requested inputs."""

    name: str
    title: str
    """Name on the board."""
    build: Callable[[], Creator]
    """Function that opens the creator. It must be picklable, because workers call it."""
    side: ClipClass
    settings: tuple[CreatorInput, ...]
    """Requested inputs: one clip per scene for each. A control has one entry, because it is made once per scene."""
    given: Given = "brief"
    seed: int = 0
    at_once: int = 2
    """Maximum number of clips that are generated concurrently."""

    def open(self) -> Creator:
        """Open the creator in the event loop of the caller, which must close it."""
        return self.build()


class CreatorRecipeSection(RecipeSection):
    """`[[creator]]` section of a recipe: the common keys below, and the keys of its kind."""

    model_config = ConfigDict(extra="allow")

    name: Line
    """Name on the board."""
    kind: Text
    """Kind of creator: `folder`, `endpoint`, `inject`, `encoded`, `degrade`, `frozen` or entry point."""
    settings: tuple[CreatorInput, ...] = ()
    """Requested inputs (`image+text`, `image`, `text`): one clip per scene for each; by default those of the kind."""
    seed: Seed = 0

    @model_validator(mode="after")
    def _keys_are_of_its_kind(self) -> "CreatorRecipeSection":
        can = self.keys.can
        beyond = [item.value for item in self.settings if item not in can]
        if beyond or len(set(self.settings)) < len(self.settings):
            raise InvalidSettingError(
                f"settings of {self.name}",
                f"cannot start from {', '.join(beyond)}" if beyond else "one is named twice",
                f"Choose from {', '.join(sorted(can))}, each once",
            )
        return self

    @property
    def keys(self) -> CreatorKeys:
        """Parse and return the keys of the section that belong to the creator's kind.

        Raises:
            InvalidSettingError: A key is unknown for this kind, or its value is invalid.
        """
        try:
            return validate_recipe_sections(CREATORS.load(self.kind), self._given())
        except InvalidSettingError as error:
            raise InvalidSettingError(
                f"{error.setting} of {self.name}", error.problem, error.remedy
            ) from error

    @property
    def held(self) -> str | None:
        """Return the creator's name in the benchmark if its clips are in there; `None` if they are made."""
        keys = self.keys
        return (keys.creator or self.name) if isinstance(keys, FrozenCreatorConfig) else None

    @property
    def stable_name(self) -> str:
        """Return the stable name, which changes with parameters and checkpoint, without opening the creator."""
        return self.keys.stable_name(self.kind, self.name)

    def resolve_paths(self, base: Path) -> "CreatorRecipeSection":
        """Return the section with its paths resolved against the recipe directory `base`."""
        return type(self).model_validate(self.model_dump() | self.keys.resolve_paths(base))

    def opener(self, *, settings: EnvironmentSettings, trusted: bool = False) -> CreatorFactory:
        """Return the factory of the creator.

        With `trusted`, the benchmark's clips are opened without a sandbox.
        """
        keys, name = self.keys, self.stable_name
        chosen = self.settings or keys.usual
        env = CreatorEnvironment(settings=settings, trusted=trusted, inputs=chosen)
        return CreatorFactory(
            name=name,
            title=self.name,
            build=partial(_open_creator, self, name, env),
            side=keys.side,
            settings=chosen[:1] if keys.side is ClipClass.CONTROL else chosen,
            given=keys.given,
            seed=self.seed,
            at_once=keys.at_once,
        )

    def _given(self) -> dict[str, Any]:
        return dict(self.model_extra or {})


def _open_creator(
    section: CreatorRecipeSection, name: str, environment: CreatorEnvironment
) -> Creator:
    return section.keys.open(name, environment)
