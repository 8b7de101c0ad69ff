"""The page about creators: its video services can be read, and every key of them has its row."""

import re
import tomllib
from pathlib import Path

from unreel.creators.config import CreatorRecipeSection
from unreel.creators.endpoint import EndpointCreatorConfig

PAGE = (Path(__file__).parents[2] / "docs" / "creators.md").read_text(encoding="utf-8")
SECTION = PAGE[PAGE.index("## `endpoint`") : PAGE.index("## `frozen`")]


def test_the_services_of_the_page_are_creators() -> None:
    (block,) = re.findall(r"```creator\n(.*?)```", SECTION, re.DOTALL)
    sections = map(CreatorRecipeSection.model_validate, tomllib.loads(block)["creator"])
    assert all(isinstance(section.keys, EndpointCreatorConfig) for section in sections)


def test_every_key_has_its_row() -> None:
    told = {
        word
        for row in re.findall(r"^\| (`.*?) \|", SECTION, re.MULTILINE)
        for word in re.findall(r"`(\w+)`", row)
    }
    assert set(EndpointCreatorConfig.model_fields) <= told
