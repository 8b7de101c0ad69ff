"""Published checkpoints: the prompts of their owners."""

from collections.abc import Mapping

from unreel.core.settings import read_environment_settings


def get_prompt(name: str) -> Mapping[str, str]:
    """Fetch the owner's prompt of the checkpoint `name` unless it is in the cache; return its parts and source.

    Raises:
        UnknownNameError: No checkpoint has that name.
        InvalidSettingError: The file with the prompt is not known.
        MachineError: The file cannot be fetched.
        UnreadableSourceError: The file is not the one of the catalogue.
    """
    from unreel.catalogue.entries import get_model
    from unreel.catalogue.owner_prompts import fetch_owner_prompt

    prompt, file = fetch_owner_prompt(get_model(name), read_environment_settings())
    return {
        "name": name,
        "prompt": prompt.variant,
        "source": prompt.source,
        "sha256": prompt.sha256,
        "file": str(file),
        "system": prompt.system,
        "user": prompt.text,
    }
