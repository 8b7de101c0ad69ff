"""NOTICE against the libraries that the installed wheels carry, and bills of materials of extras."""

import importlib.util
import re
import sys
from importlib.metadata import PackageNotFoundError, files, version
from types import ModuleType

import pytest

from deploy.compose import ROOT

NOTICE = (ROOT / "NOTICE").read_text(encoding="utf-8")


def find_library(package: str, name: str) -> str:
    """The bytes of a library in a wheel, as text; a test is skipped where the wheel is another."""
    try:
        found = [path for path in files(package) or () if path.name.startswith(f"{name}-")]
    except PackageNotFoundError:
        pytest.skip(f"{package} is not installed")
    if sys.platform != "linux" or not found:
        pytest.skip("another wheel")
    return found[0].name


@pytest.mark.parametrize(("package", "name"), [("av", "PyAV"), ("opencv-python-headless", "")])
def test_notice_names_the_installed_versions(package: str, name: str) -> None:
    find_library(package, "libavcodec")
    assert f"{package} {version(package)}" in NOTICE


@pytest.mark.parametrize(
    ("package", "name", "said"),
    [
        ("av", "libx264", "libx264 (build {})"),
        ("av", "libx265", "libx265 (build {})"),
        ("opencv-python-headless", "libcrypto", "OpenSSL {}"),
    ],
)
def test_notice_names_the_libraries_under_other_terms(package: str, name: str, said: str) -> None:
    number = re.sub(r".*\.so\.", "", find_library(package, name))
    assert said.format(number) in NOTICE


def test_no_wheel_of_pyav_carries_a_library_that_notice_leaves_out() -> None:
    find_library("av", "libx264")
    names = {path.name.partition("-")[0] for path in files("av") or () if "av.libs" in str(path)}
    permissive = {
        "libSvtAv1Enc",
        "libdav1d",
        "libdrm",
        "libopus",
        "libsharpyuv",
        "libvpl",
        "libvpx",
    }
    permissive |= {"libwebp", "libwebpmux", "libXau", "libopencore"} | {
        n for n in names if "xcb" in n
    }
    own = {n for n in names if n.startswith(("libav", "libsw"))}
    assert {n for n in names - permissive - own if n not in NOTICE} == set()


def load_sbom_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("sbom", ROOT / ".ci" / "sbom.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("extra", ["annotate", "curate", "desk", "eval", "ray", "review", "reward"])
def test_all_that_an_extra_brings_is_pinned_and_so_in_its_bill(extra: str) -> None:
    script = load_sbom_script()
    pins = script.read_pins(["base", "test", "dev"])
    try:
        names = set(script.iter_required([f"unreel[{extra}]"]))
    except PackageNotFoundError as error:
        pytest.skip(f"{error} is not installed")
    assert names - pins.keys() == set()
    assert {"av", "httpx2"} <= names
    assert "unreel" not in names
