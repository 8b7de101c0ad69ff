"""The script behind the start-up figures of `docs/performance.md`, and what short commands must not load."""

import subprocess
import sys
from pathlib import Path

import pytest

from synthesise import ClipRecipe, synthesise

SOURCES = Path(__file__).parents[2] / "src"

LOADED = """
import sys
from unreel.cli.main import main

sys.argv[1:] = {typed}
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print("loaded", *sorted({{name.partition(".")[0] for name in sys.modules}}), *sys.modules, file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("typed", "absent"),
    [
        (["--help"], {"av", "numpy", "pydantic", "rich", "scipy"}),
        (["probe", "clip.mp4"], {"av", "numpy", "PIL", "scipy", "pyarrow"}),
        (["frames", "clip.mp4"], {"av", "scipy", "pyarrow"}),
        (["review", "--sample"], {"scipy", "pyarrow", "lance", "rapidocr"}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_short_command_does_not_load_what_it_does_not_use(
    tmp_path: Path, typed: list[str], absent: set[str]
) -> None:
    (tmp_path / "clip.mp4").write_bytes(synthesise(ClipRecipe(n_frames=4)))
    program = LOADED.format(typed=typed)
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    loaded = set(done.stderr.rpartition("loaded ")[2].split())
    assert "unreel" in loaded
    assert not loaded & absent


def test_no_module_imports_scipy_stats_which_takes_a_second_to_load() -> None:
    found = [
        str(path)
        for path in SOURCES.rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.strip().startswith(("from scipy.stats", "import scipy.stats"))
        or (line.strip().startswith("from scipy import") and "stats" in line)
    ]
    assert found == []
