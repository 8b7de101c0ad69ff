"""On a machine that lacks a layer of protection, commands say so once, or refuse."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")

Run = Callable[..., subprocess.CompletedProcess[str]]
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"


@pytest.fixture
def lacking(tmp_path: Path) -> Callable[[str], Run]:
    """Runs `unreel` in a Python in which `module` cannot be imported, and so in what it starts."""

    def of(module: str) -> Run:
        folder = tmp_path / "lacking"
        folder.mkdir()
        (folder / f"{module}.py").write_text("raise ImportError", encoding="utf-8")
        boot = f"import sys; sys.path.insert(0, {str(folder)!r})\n"
        boot += "from unreel.cli.main import main; main()"

        def run(*arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                [sys.executable, "-c", boot, *map(str, arguments)],
                check=False,
                capture_output=True,
                text=True,
                cwd=tmp_path,
                env={"PATH": PATH, **variables},
            )

        return run

    return of


RECIPE = """
name = "set"
[source]
path = "films"
licence = "CC0"
[duplicates]
"""


def _commands(clip: Path) -> dict[str, tuple[object, ...]]:
    recipe, films = clip.parent / "recipe.toml", clip.parent / "films"
    recipe.write_text(RECIPE, encoding="utf-8")
    for side, more in (("real", b""), ("generated/Veo", b"\0\0\0\x08free")):
        (films / side).mkdir(parents=True, exist_ok=True)
        (films / side / "a.mp4").write_bytes(clip.read_bytes() + more)
    asked = ("--model", "coin", "--protocol", "reality")
    return {
        "probe": ("probe", clip, clip),
        "review": ("review", clip, *asked),
        "eval": ("eval", films, *asked),
        "curate": ("curate", "step", "scan", recipe),
    }


@pytest.mark.parametrize("command", ["probe", "review", "curate"])
def test_without_seccomp_a_command_refuses_and_says_what_to_do(
    lacking: Callable[[str], Run], clip: Path, command: str
) -> None:
    done = lacking("pyseccomp")(*_commands(clip)[command])
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    said = done.stderr.strip().splitlines()[-1]
    assert said.startswith("unreel: seccomp")
    for way_out in ("apt-get install libseccomp2", "UNREEL_MEDIA_WITHOUT_SECCOMP=1", "--trusted"):
        assert way_out in said
    assert done.stdout == ""


@pytest.mark.parametrize("command", ["probe", "review"])
def test_without_seccomp_one_may_insist_and_is_told_once(
    lacking: Callable[[str], Run], clip: Path, command: str
) -> None:
    run = lacking("pyseccomp")
    done = run(*_commands(clip)[command], UNREEL_MEDIA_WITHOUT_SECCOMP="1")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("without seccomp") == 1
    trusted = run(*_commands(clip)[command], "--trusted")
    assert trusted.returncode == 0, trusted.stderr


@pytest.mark.parametrize("command", ["probe", "eval"])
def test_without_landlock_a_command_works_and_says_so_once(
    lacking: Callable[[str], Run], clip: Path, command: str
) -> None:
    done = lacking("landlock")(*_commands(clip)[command])
    assert done.returncode == 0, done.stderr
    said = done.stderr.replace(str(clip.parent), "").splitlines()
    (told,) = [line for line in said if "landlock" in line]
    assert "without landlock" in told
    assert told.endswith("pip install landlock")
    assert "landlock" not in done.stdout.replace(str(clip.parent), "")


def test_the_doctor_tells_what_is_missing_and_does_not_refuse(
    lacking: Callable[[str], Run],
) -> None:
    done = lacking("pyseccomp")("doctor", "--json")
    assert done.returncode == 1
    told = json.loads(done.stdout)["sandbox"]
    assert "seccomp" not in told["active"]
    assert "landlock" in told["active"]
    assert told["problem"] == ""
