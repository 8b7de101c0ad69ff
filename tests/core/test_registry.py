"""Names that people choose from: ours first, then what other packages bring."""

import subprocess
import sys
from pathlib import Path

import pytest

from unreel.core import registry
from unreel.core.errors import InvalidSettingError, MissingExtraError, UnknownNameError
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


def test_a_name_is_loaded_when_it_is_asked_for() -> None:
    assert NamedObjectRegistry[object]("angle", OURS).load("sine")(0) == 0  # type: ignore[operator]


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match=r"no angle is named 'sin'.*missing, sine"):
        NamedObjectRegistry[object]("angle", OURS).load("sin")


def test_a_missing_extra_is_named() -> None:
    with pytest.raises(MissingExtraError, match=r"unreel\[eval\]"):
        NamedObjectRegistry[object]("angle", OURS).load("missing")


def test_another_package_adds_a_name(brought: NamedObjectRegistry[object]) -> None:
    assert "tangent" in brought
    assert "cosine" not in brought
    assert brought.names() == ["absent", "gone", "missing", "sine", "tangent"]
    assert brought.load("tangent")(0) == 0  # type: ignore[operator]


def test_a_name_of_ours_cannot_be_taken(brought: NamedObjectRegistry[object]) -> None:
    assert brought.load("sine")(0) == 0  # type: ignore[operator]


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
