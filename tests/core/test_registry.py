"""Names that people choose from: ours first, then what other packages bring."""

import subprocess
import sys
from pathlib import Path

import pytest

from unreel.core import registry
from unreel.core.errors import InvalidSettingError
from unreel.core.registry import LazyImport, NamedObjectRegistry

OURS = {
    "sine": LazyImport("math:sin"),
    "missing": LazyImport("no_such_package:thing", extra="eval"),
}


@pytest.fixture
def brought(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> NamedObjectRegistry[object]:
    """A registry beside a package that brings `tangent`, `sine` and two that cannot be loaded."""
    info = tmp_path / "trigonometry-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: trigonometry\nVersion: 1.0\n")
    points = ["tangent = math:tan", "sine = math:cos", "gone = math:no_such", "absent = nowhere:x"]
    (info / "entry_points.txt").write_text("\n".join(["[unreel.angles]", *points]))
    monkeypatch.syspath_prepend(str(tmp_path))
    registry._read_entry_points.cache_clear()
    return NamedObjectRegistry("angle", OURS, group="unreel.angles")


@pytest.mark.parametrize("name", ["gone", "absent"])
def test_what_cannot_be_loaded_is_told_with_whose_it_is(
    brought: NamedObjectRegistry[object], name: str
) -> None:
    with pytest.raises(InvalidSettingError, match=r"of trigonometry cannot be loaded"):
        brought.load(name)


def test_nobody_looks_for_packages_before_a_name_of_theirs_is_asked_for() -> None:
    code = (
        "import sys; from unreel.reviewers.registry import REVIEWERS; REVIEWERS.load('coin');"
        "assert 'importlib.metadata' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
