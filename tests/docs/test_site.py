"""The site builds without warnings and dead links; its generated pages are complete."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import click
import pytest

pytest.importorskip("zensical", reason="needs the group dev")
pytest.importorskip("fastapi", reason="needs the extra reward: pip install 'unreel[reward]'")

from unreel.cli.main import unreel

ROOT = Path(__file__).parents[2]


def load_script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(Path(name).stem, ROOT / "docs" / name)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_of_commands_has_every_command_and_option() -> None:
    page = load_script("reference/make_commands.py").write_page()
    sections = dict(
        re.findall(r"^##+ `?(unreel [^`\n]+)`?\n(.*?)(?=^##+ |\Z)", page, re.MULTILINE | re.DOTALL)
    )

    def list_missing(command: click.Command, name: str) -> list[str]:
        if isinstance(command, click.Group):
            context = click.Context(command)
            below = [
                (one, command.get_command(context, one)) for one in command.list_commands(context)
            ]
            missing = [
                word
                for one, found in below
                if found
                for word in list_missing(found, f"{name} {one}")
            ]
        else:
            missing = []
        if name == "unreel":
            return missing
        options = [
            one.opts[0]
            for one in command.params
            if isinstance(one, click.Option) and not one.hidden
        ]
        return missing + [
            f"{name} {one}" for one in options if f"`{one}" not in sections.get(name, "")
        ]

    assert list_missing(unreel, "unreel") == []


def test_the_page_of_the_http_api_has_every_path_and_schema() -> None:
    script = load_script("reference/make_http.py")
    page, document = script.write_page(), script.read_document()
    schemas = {*document["components"]["schemas"]} - {"HTTPValidationError", "ValidationError"}
    assert [name for name in [*document["paths"], *schemas] if name not in page] == []


def test_the_site_builds_without_warnings_and_dead_links(tmp_path: Path) -> None:
    assert load_script("build_site.py").build_site(tmp_path, with_gallery=False) == []
    site = tmp_path / "site"
    assert "http.html" in (site / "llms.txt").read_text(encoding="utf-8")
    assert (site / "search.json").stat().st_size > 100_000


@pytest.mark.slow
def test_the_site_has_a_live_evidence_page_and_report(tmp_path: Path) -> None:
    assert load_script("build_site.py").build_site(tmp_path, with_gallery=True) == []
    for page in ("evidence/evidence.html", "report/index.html"):
        assert (tmp_path / "site" / "live" / page).is_file()


def test_a_dead_link_and_a_dead_anchor_are_found(tmp_path: Path) -> None:
    (tmp_path / "b.html").write_text('<h1 id="here">b</h1>')
    links = ("b.html", "b.html#here", "b.html#gone", "c.html", "https://example.org/x")
    (tmp_path / "a.html").write_text("".join(f'<a href="{link}">x</a>' for link in links))
    found = load_script("build_site.py").find_dead_links(tmp_path)
    assert found == ["a.html: dead link b.html#gone", "a.html: dead link c.html"]
