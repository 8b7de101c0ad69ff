"""Build the documentation site with its live gallery and llms.txt.

    python docs/build_site.py OUT [--without-gallery]

OUT gets `source/`, the staged pages, and `site/`, the site. Exits with status 1 on a warning or a dead link.
"""

import argparse
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import yaml

ROOT: Final = Path(__file__).parents[1]
ROOT_PAGES: Final = ("SECURITY.md", "ARCHITECTURE.md", "CONTRIBUTING.md")
GENERATORS: Final = (
    "make_figures.py",
    "reference/make_commands.py",
    "reference/make_http.py",
    "reference/make_python.py",
)
"""Scripts below `docs` that write the page of their name from the code."""
LINK: Final = re.compile(r"\]\(([^)\s]+)\)")
UNREEL: Final = (sys.executable, "-c", "from unreel.cli.main import main; main()")
CLIPS: Final = ("review --sample --out live/evidence", "curate init drawn --sample")
REPORT: Final = (
    "eval drawn/clips/clips.csv --protocol reality --model coin --model always-real --model motion",
    "report runs --out live/report",
)


def main() -> int:
    """Build the site and print its problems."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--without-gallery", action="store_true", help="link to no live pages")
    given = parser.parse_args()
    problems = build_site(given.out, with_gallery=not given.without_gallery)
    sys.stderr.writelines(f"{problem}\n" for problem in problems)
    return int(bool(problems))


def build_site(out: Path, *, with_gallery: bool) -> list[str]:
    """Return the warnings and dead links of a new site in `out`."""
    source = out / "source"
    stage_pages(source)
    write_generated_pages(source)
    if with_gallery:
        _make_gallery(out)
    else:
        _remove_live_links(source / "gallery.md")
    config = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    (out / "mkdocs.yml").write_text(config.replace("docs_dir: docs", "docs_dir: source"), "utf-8")
    (source / "llms.txt").write_text(write_llms(source, yaml.safe_load(config)["nav"]), "utf-8")
    command = [sys.executable, "-m", "zensical", "build", "--strict", "-f", str(out / "mkdocs.yml")]
    done = subprocess.run(command, cwd=out, check=False, capture_output=True, text=True)  # noqa: S603
    printed = done.stdout + done.stderr
    if done.returncode or "warning" in printed.lower():
        return [printed]
    return [*find_dead_links(out / "site"), *find_pages_without_nav(source, config)]


def stage_pages(source: Path) -> None:
    """Copy the pages of `docs` and of the root to `source`; scripts stay."""
    shutil.copytree(ROOT / "docs", source, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    shutil.copytree(ROOT / "docs" / "examples", source / "examples", dirs_exist_ok=True)
    for name in ROOT_PAGES:
        shutil.copy(ROOT / name, source / name.lower())
    for page in source.rglob("*.md"):
        page.write_text(_move_links(page.read_text(encoding="utf-8")), encoding="utf-8")


def write_generated_pages(source: Path) -> None:
    """Write the pages that are generated from the code into `source`."""
    for script in GENERATORS:
        page = source / script.replace("make_", "").replace(".py", ".md")
        text = runpy.run_path(str(ROOT / "docs" / script))["write_page"]()
        page.write_text(_move_links(text), encoding="utf-8")


def _move_links(text: str) -> str:
    return LINK.sub(lambda found: f"]({_move_link(found[1])})", text)


def _move_link(target: str) -> str:
    """Return a link between the root and `docs` as one inside the site."""
    path, mark, anchor = target.partition("#")
    folder, _, name = path.rpartition("/")
    if name in ROOT_PAGES:
        folder = folder.removesuffix("..").rstrip("/")
        return f"{folder}{'/' * bool(folder)}{name.lower()}{mark}{anchor}"
    return target.removeprefix("docs/")


def _make_gallery(out: Path) -> None:
    """Make the live pages from the first twelve synthesised clips; the others are for curations."""
    _run_commands(CLIPS, out)
    clips = out / "drawn" / "clips"
    rows = (clips / "manifest.csv").read_text(encoding="utf-8").splitlines()
    (clips / "clips.csv").write_text("\n".join(rows[:13]) + "\n", encoding="utf-8")
    _run_commands(REPORT, out)
    shutil.move(out / "live", out / "source" / "live")


def _run_commands(commands: Iterable[str], folder: Path) -> None:
    for words in commands:
        command = [*UNREEL, *words.split()]
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)  # noqa: S603


def _remove_live_links(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    page.write_text(re.sub(r"\[([^]]+)\]\(live/[^)]+\)", r"\1", text), encoding="utf-8")


def write_llms(source: Path, nav: list[Any]) -> str:
    """Return llms.txt: each page of the navigation with its first sentence."""
    lines = ["# unreel", "", f"> {_read_summary(source / 'index.md')}"]
    for shelf in nav:
        ((name, pages),) = shelf.items()
        lines += ["", f"## {name}", ""]
        for title, path in iter_pages(pages):
            link = Path(path).with_suffix(".html").as_posix().replace("README.html", "index.html")
            lines.append(f"- [{title}]({link}): {_read_summary(source / path)}")
    return "\n".join(lines) + "\n"


def iter_pages(nav: list[Any]) -> Iterator[tuple[str, str]]:
    """Yield title and path of each page of a navigation."""
    for entry in nav:
        if isinstance(entry, str):
            yield "Home", entry
            continue
        ((title, below),) = entry.items()
        if isinstance(below, str):
            yield title, below
        else:
            yield from iter_pages(below)


def _read_summary(page: Path) -> str:
    """Return the first sentence of a page, without marks."""
    text = page.read_text(encoding="utf-8")
    blocks = re.sub(r"```.*?```", "", text, flags=re.DOTALL).split("\n\n")
    first = next((b for b in blocks if re.match(r"[A-Za-z*`\[]", b.strip())), "")
    plain = re.sub(r"\[([^]]+)\]\([^)]+\)|[*`]", r"\1", " ".join(first.split()))
    return re.split(r"(?<=[.:])\s", plain)[0]


class _Targets(HTMLParser):
    """Links and anchors of one HTML page."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, _tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep addresses and names."""
        for name, value in attrs:
            if name in {"href", "src", "poster"} and value:
                self.links.append(value)
            elif name in {"id", "name"} and value:
                self.anchors.add(value)


def find_dead_links(site: Path) -> list[str]:
    """Return each link of a page of ours to a missing file or anchor of the site."""
    live = site / "live"
    pages = {page.resolve(): _Targets(page) for page in site.rglob("*.html")}
    dead = []
    for page, targets in pages.items():
        if page.name == "404.html" or live.resolve() in page.parents:
            continue
        for link in targets.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            path = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            path = path / "index.html" if path.is_dir() else path
            anchors = pages[path].anchors if path in pages else set()
            if not path.is_file() or (
                path in pages and parts.fragment and unquote(parts.fragment) not in anchors
            ):
                dead.append(f"{page.relative_to(site.resolve())}: dead link {link}")
    return dead


def find_pages_without_nav(source: Path, config: str) -> list[str]:
    """Return the pages that no entry of the navigation names; decisions have an index."""
    listed = {path for _, path in iter_pages(yaml.safe_load(config)["nav"])}
    pages = {page.relative_to(source).as_posix() for page in source.rglob("*.md")}
    return [
        f"not in the navigation of mkdocs.yml: {page}"
        for page in sorted(pages - listed)
        if not page.startswith("decisions/")
    ]


if __name__ == "__main__":
    sys.exit(main())
