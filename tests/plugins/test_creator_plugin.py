"""The creator of docs/creators.md, installed as a package of somebody else's would be; and the page's recipes."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from unreel.creators.config import CREATORS, CreatorRecipeSection
from unreel.recipes.validation import validate_recipe_sections

pytest.importorskip("lance", reason="needs the extra `eval`")

PAGE = (Path(__file__).parents[2] / "docs/creators.md").read_text(encoding="utf-8")
SEASON = """
name = "zoomed"
benchmark = "clips.csv"
floors = false
[[reviewer]]
model = "always-real"
[[creator]]
name = "slow zoom"
kind = "zoom"
percent = 20
settings = ["image"]
"""


def blocks(tag: str) -> list[str]:
    return re.findall(rf"^```{tag}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """What pip would leave behind: the module, and the metadata that names it."""
    site = tmp_path / "site"
    info = site / "zoom-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "zoom.py").write_text(blocks("plugin")[0], encoding="utf-8")
    points = tomllib.loads(blocks("toml")[0])["project"]["entry-points"]["unreel.creators"]
    lines = "".join(f"{name} = {target}\n" for name, target in points.items())
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: zoom\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[unreel.creators]\n{lines}")
    return site


def unreel(site: Path, *words: str) -> subprocess.CompletedProcess[str]:
    start = "from unreel.cli.main import main; main()"
    code = f"import sys; sys.path.insert(0, {str(site)!r}); {start}"
    command = [sys.executable, "-c", code, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=site.parent)


def test_a_key_that_it_does_not_know_is_told_with_the_nearest(site: Path, tmp_path: Path) -> None:
    (tmp_path / "season.toml").write_text(SEASON.replace("percent", "per_cent"))
    told = unreel(site, "arena", "plan", "season.toml")
    assert told.returncode == 2
    assert "Did you mean 'percent'?" in told.stderr


def test_the_kit_passes_on_the_pages_own_creator(site: Path) -> None:
    (site / "test_zoom.py").write_text(blocks("plugin-test")[0], encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_zoom.py"]
    done = subprocess.run(command, cwd=site, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_every_creator_of_the_page_can_be_written_so_and_every_kind_is_shown() -> None:
    shown = [creator for block in blocks("creator") for creator in tomllib.loads(block)["creator"]]
    sections = [validate_recipe_sections(CreatorRecipeSection, keys) for keys in shown]
    assert {section.kind for section in sections} == set(CREATORS.entries)
    assert len({section.stable_name for section in sections}) == len(sections)
