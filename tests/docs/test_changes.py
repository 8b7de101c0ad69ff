"""A release collects every file of `changes/` into the change log."""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
MARK = "<!-- towncrier release notes start -->\n"


def collect(folder: Path, *words: str) -> str:
    command = [sys.executable, "-m", "towncrier", "build", "--version", "0.0.0", *words]
    run = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    return run.stdout


def flow(text: str) -> str:
    return " ".join(text.split())


def test_every_change_is_told() -> None:
    told = flow(collect(ROOT, "--draft"))
    files = sorted((ROOT / "changes").iterdir())
    untold = [path.name for path in files if flow(path.read_text(encoding="utf-8")) not in told]
    assert untold == [], "name it <word>.added.md, .changed.md, .fixed.md or .removed.md"


def test_a_release_writes_below_the_mark_and_leaves_no_change_behind(tmp_path: Path) -> None:
    for name in ("pyproject.toml", "CHANGELOG.md"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "changes").mkdir()
    for kind in ("added", "changed", "fixed", "removed"):
        (tmp_path / "changes" / f"+word.{kind}.md").write_text(f"One thing is {kind}.\n")
    collect(tmp_path, "--yes", "--date", "2026-01-02")
    assert list((tmp_path / "changes").iterdir()) == []
    head, _, log = (tmp_path / "CHANGELOG.md").read_text().partition(MARK)
    assert head.startswith("# Changelog\n")
    assert log.startswith(
        "\n## 0.0.0 - 2026-01-02\n"
        "\n### Added\n\n- One thing is added.\n"
        "\n### Changed\n\n- One thing is changed.\n"
        "\n### Fixed\n\n- One thing is fixed.\n"
        "\n### Removed\n\n- One thing is removed.\n"
    )
