"""Base model of a training: its directory, hash, licence and input format."""

from dataclasses import dataclass
from pathlib import Path

from unreel.reviewers.local.checkpoint import digest_weights, locate_model
from unreel.reviewers.local.input_format import InputSpec
from unreel.training.card import base_licence
from unreel.training.recipe import ModelSection, TrainRecipe


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseModelFolder:
    """A model on this machine."""

    name: str
    """As its makers call it, or its folder."""
    folder: Path
    digest: str
    licence: str
    """As it declares it; "" where it does not."""


def find_base(section: ModelSection) -> BaseModelFolder:
    """Find the model that `section` names: a directory, or a model downloaded from a hub.

    Raises:
        UnreadableSourceError: The model is not on this machine.
    """
    folder = locate_model(section.name, section.revision)
    return BaseModelFolder(
        name=folder.absolute().name if Path(section.name).is_dir() else section.name,
        folder=folder,
        digest=digest_weights(folder),
        licence=base_licence(folder),
    )


def read_input_format(recipe: TrainRecipe, base: BaseModelFolder) -> InputSpec:
    """Return the input format of the checkpoint: that of its examples."""
    if recipe.model.tune != "lora":
        return recipe.taught
    where = {"base": str(base.folder.absolute()), "base_digest": base.digest}
    return recipe.taught.model_copy(update=where)
