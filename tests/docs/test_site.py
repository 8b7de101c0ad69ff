"""The site builds without warnings and dead links; its generated pages are current."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("zensical", reason="needs the group dev")
pytest.importorskip("fastapi", reason="needs the extra reward: pip install 'unreel[reward]'")

ROOT = Path(__file__).parents[2]


def load_script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(Path(name).stem, ROOT / "docs" / name)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("script", "page"),
    [
        ("make_errata.py", "errata.md"),
        ("reference/make_commands.py", "reference/commands.md"),
        ("reference/make_http.py", "reference/http.md"),
    ],
)
def test_a_generated_page_is_current(script: str, page: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert text == load_script(script).write_page(), f"run python docs/{script}"


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
