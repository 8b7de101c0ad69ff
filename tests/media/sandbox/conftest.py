"""Fixtures of the sandbox's tests."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from unreel.media.sandbox import FileSandbox, SandboxLimits

# The tests of this folder share modules that craft files, and a zygote imports task tables from
# here: it searches where its caller does.
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def hostile() -> Iterator[FileSandbox]:
    """A sandbox whose tasks attack it."""
    with FileSandbox(SandboxLimits(seconds=3), tasks="hostile_tasks:TASKS") as sandbox:
        yield sandbox


@pytest.fixture(scope="session")
def sandbox() -> Iterator[FileSandbox]:
    """A sandbox with the real tasks, the real limits, and one task that guards nothing."""
    with FileSandbox(tasks="naive_tasks:TASKS") as sandbox:
        yield sandbox


@pytest.fixture
def clip(tmp_path: Path) -> Path:
    """A file whose content does not matter."""
    path = tmp_path / "clip.mp4"
    path.write_bytes(b"head, body and tail")
    return path


@pytest.fixture
def tell(capsys: pytest.CaptureFixture[str]) -> Callable[[str], None]:
    """Shows a measured figure in the test's output, whatever pytest captures."""

    def show(text: str) -> None:
        with capsys.disabled():
            sys.stdout.write(f"\n{text}")

    return show
