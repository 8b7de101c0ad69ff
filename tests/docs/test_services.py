"""The page about video services: its recipes can be read, and every key has its row."""

import re
import tomllib
from pathlib import Path

from unreel.creators.config import CreatorRecipeSection
from unreel.creators.endpoint.config import EndpointCreatorConfig

PAGE = (Path(__file__).parents[2] / "docs" / "creators-endpoint.md").read_text(encoding="utf-8")


def test_the_recipes_of_the_page_are_creators() -> None:
    blocks = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    found = [
        CreatorRecipeSection.model_validate(tomllib.loads(each)["creator"][0]) for each in blocks
    ]
    assert [each.stable_name.partition("-")[0] for each in found] == [
        "endpoint:sora",
        "endpoint:ours",
    ]
    keys = [each.keys for each in found]
    assert all(isinstance(each, EndpointCreatorConfig) for each in keys)


def test_every_key_has_its_row() -> None:
    told = {
        word
        for row in re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE)
        for word in re.findall(r"`(\w+)`", row)
    }
    assert set(EndpointCreatorConfig.model_fields) <= told
