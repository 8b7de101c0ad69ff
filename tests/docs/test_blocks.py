"""What the pages show works: every Python block of a page runs, in order, beside the files that it names."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from footage import film, write_clip

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
UNREEL = "from unreel.cli.main import main; main()"
FENCE = re.compile(r"^ *```(\w*)")


def read_script(page: str) -> str:
    """The Python blocks of `page`, each line at its own number; a page without any is empty."""
    lines, tag, indent = [], None, 0
    for line in page.splitlines():
        fence = FENCE.match(line)
        if fence is None:
            lines.append(line[indent:] if tag == "python" else "")
            continue
        tag = fence[1] if tag is None else None
        indent = line.index("`")
        lines.append("")
    return "\n".join(lines).strip("\n") and "\n".join(lines) + "\n"


def read_tags(page: str) -> set[str]:
    return {found[1] for line in page.splitlines() if (found := FENCE.match(line))}


SCRIPTS = {path: script for path in PAGES if (script := read_script(path.read_text("utf-8")))}


@pytest.fixture(scope="session")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that pages name: clips, clips of two makers, a table of them, and a run's rows."""
    folder = tmp_path_factory.mktemp("stock")
    for seed, name in enumerate(("real/walk", "real/street", "maker/walk", "maker/street")):
        clip = folder / "clips" / f"{name}.mp4"
        clip.parent.mkdir(parents=True, exist_ok=True)
        clip.write_bytes(write_clip(film(seed, n_frames=48)))
    for name in ("clip.mp4", "clean.mp4"):
        shutil.copy(folder / "clips" / "real" / "walk.mp4", folder / name)
    rows = ["clips/real/walk.mp4,real,", "clips/maker/walk.mp4,generated,maker"]
    (folder / "clips.csv").write_text("\n".join(["location,label,creator", *rows]) + "\n")
    for words in (
        "eval clips.csv --model always-real --protocol reality --out run",
        "export run --to parquet --out answers.parquet",
    ):
        command = [sys.executable, "-c", UNREEL, *words.split()]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder


@pytest.mark.parametrize("page", SCRIPTS, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_python_block_of_a_page_runs(page: Path, stock: Path, tmp_path: Path) -> None:
    folder = tmp_path / "here"
    shutil.copytree(stock, folder)
    script = tmp_path / f"{page.stem}.py"
    script.write_text(SCRIPTS[page], encoding="utf-8")
    command = [sys.executable, script]
    run = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
    assert run.returncode == 0, f"{page.relative_to(ROOT)}, by its lines:\n{run.stderr}"
    assert "Failure(" not in run.stdout


def test_no_python_hides_behind_another_name() -> None:
    tags = {str(path.relative_to(ROOT)): read_tags(path.read_text("utf-8")) for path in PAGES}
    assert {path: found for path, found in tags.items() if found & {"py", "pycon", "python3"}} == {}
