"""The plug-in of docs/plugins.md, installed as a package of somebody else's would be."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from synthesise import ClipRecipe, synthesise

pytest.importorskip("lance", reason="needs the extra `eval`")

PAGE = Path(__file__).parents[2] / "docs/plugins.md"
CODE = "from unreel.cli.main import main; main()"


def block(tag: str, number: int = 0) -> str:
    found = re.findall(rf"```{tag}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    text: str = found[number]
    return text


def install(folder: Path, module: str, entry_points: str, *, name: str = "loud_edges") -> Path:
    """What pip would leave behind: the module, and the metadata that names it."""
    site = folder / "site"
    info = site / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (site / f"{name}.py").write_text(module, encoding="utf-8")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: loud-edges\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entry_points, encoding="utf-8")
    return site


def read_points(toml: str) -> str:
    """The entry points of a `pyproject.toml`, as pip writes them down."""
    ((group, line),) = re.findall(
        r"^\[project\.entry-points\.\"(.+)\"\]\n(.+)$", toml, re.MULTILINE
    )
    return f"[{group}]\n{line.replace(chr(34), '')}\n"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return install(tmp_path, block("plugin"), read_points(block("toml")))


@pytest.fixture
def clips(tmp_path: Path) -> Path:
    lines = ["file,label,generator"]
    for number in range(4):
        made = "Sora" if number % 2 else ""
        (tmp_path / f"c{number}.mp4").write_bytes(synthesise(ClipRecipe(n_frames=12, seed=number)))
        lines.append(f"c{number}.mp4,{'generated' if made else 'real'},{made}")
    (tmp_path / "clips.csv").write_text("\n".join(lines), encoding="utf-8")
    return tmp_path / "clips.csv"


def unreel(site: Path, *words: str) -> subprocess.CompletedProcess[str]:
    code = f"import sys; sys.path.insert(0, {str(site)!r}); {CODE}"
    command = [sys.executable, "-c", code, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=site.parent)


def test_a_reviewer_of_another_package_is_named_by_model(site: Path, clips: Path) -> None:
    asked = ["eval", str(clips), "--trusted", "--protocol", "reality", "--model", "smoothness"]
    done = unreel(site, *asked, "--out", str(site.parent / "run"), "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["outcome"]["reviewer"] == "smoothness-1"
    assert told["outcome"]["answers"]["done"] == 4


def test_it_reviews_single_clips_and_its_refusal_is_a_failure(site: Path, clips: Path) -> None:
    done = unreel(
        site, "review", str(clips.parent / "c0.mp4"), "--trusted", "--model", "smoothness", "--json",
        "--protocol", "reality", "--protocol", "trace",
    )  # fmt: skip
    (row,) = json.loads(done.stdout)["clips"]
    said = {opinion["instrument"]: opinion for opinion in row["opinions"]}
    assert done.returncode == 1
    assert len(said) == 2


def test_the_kit_passes_on_the_pages_own_plug_in(site: Path) -> None:
    (site / "test_smoothness.py").write_text(block("plugin-test"), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_smoothness.py"]
    done = subprocess.run(command, cwd=site, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_a_name_of_ours_cannot_be_taken(tmp_path: Path, clips: Path) -> None:
    points = "[unreel.reviewers]\ncoin = loud_edges:SmoothnessReviewer\n"
    site = install(tmp_path, block("plugin"), points)
    asked = ["eval", str(clips), "--trusted", "--protocol", "reality", "--model", "coin"]
    done = unreel(site, *asked, "--out", str(tmp_path / "run"), "--json")
    assert json.loads(done.stdout)["outcome"]["reviewer"].startswith("coin")


def test_a_plug_in_that_cannot_be_loaded_is_told_with_whose_it_is(
    tmp_path: Path, clips: Path
) -> None:
    points = "[unreel.reviewers]\nsmoothness = loud_edges:SmoothnessReviewer\n"
    site = install(tmp_path, "raise ValueError('no weights')", points)
    asked = ["eval", str(clips), "--trusted", "--protocol", "reality", "--model", "smoothness"]
    done = unreel(site, *asked, "--out", str(tmp_path / "run"))
    assert done.returncode == 2
    assert "smoothness" in done.stderr
    assert "loud-edges" in done.stderr
    assert "no weights" in done.stderr
    assert "Traceback" not in done.stderr


INSTRUMENT = """
from dataclasses import replace
from unreel.core.question import Instrument
from unreel.protocols.reality import REALITY

CANDOUR = replace(REALITY, instrument=Instrument("candour", 3), title="Real or not")
DUEL = replace(CANDOUR, instrument=Instrument("duel", 1), subject="pair")
"""


def test_an_instrument_of_another_package_is_asked_scored_and_shown_as_ours_are(
    tmp_path: Path, clips: Path
) -> None:
    points = "[unreel.protocols]\ncandour = loud_edges:CANDOUR\nduel = loud_edges:DUEL\n"
    site = install(tmp_path, INSTRUMENT, points)
    asked = ["eval", str(clips), "--trusted", "--protocol", "candour", "--model", "coin"]
    done = unreel(site, *asked, "--out", str(tmp_path / "run"), "--json")
    assert done.returncode == 0, done.stderr
    (scored,) = json.loads(done.stdout)["scores"]
    assert scored["scorecard"]["n_answered"] == 4
    told = unreel(site, "report", str(tmp_path / "run"), "--out", str(tmp_path / "page"))
    assert told.returncode == 0, told.stderr
    assert "Real or not" in (tmp_path / "page" / "index.html").read_text(encoding="utf-8")
    pair = unreel(
        site,
        "review",
        str(clips.parent / "c0.mp4"),
        "--trusted",
        "--model",
        "coin",
        "--protocol",
        "duel",
    )
    assert pair.returncode == 2
    assert "does not ask about one clip" in pair.stderr


def test_an_instrument_that_cannot_be_loaded_leaves_the_others_alone(
    tmp_path: Path, clips: Path
) -> None:
    points = "[unreel.protocols]\ncandour = loud_edges:CANDOUR\n"
    site = install(tmp_path, "raise ValueError('no weights')", points)
    clip = str(clips.parent / "c0.mp4")
    assert unreel(site, "review", clip, "--model", "coin").returncode == 0
    done = unreel(site, "review", clip, "--trusted", "--model", "coin", "--protocol", "candour")
    assert done.returncode == 2
    assert "loud-edges" in done.stderr


def test_a_layout_of_another_package_is_found_checked_and_evaluated(
    tmp_path: Path, clips: Path
) -> None:
    points = "[unreel.layouts]\ntruth-text = loud_edges:LAYOUT\n"
    site = install(tmp_path, block("plugin-layout"), points)
    clips.unlink()
    truth = "real c0.mp4\nSora c1.mp4\nreal c2.mp4\nSora ../../etc/passwd\nSora c1.mp4\n"
    (tmp_path / "truth.txt").write_text(truth, encoding="utf-8")
    checked = json.loads(unreel(site, "benchmarks", "check", str(tmp_path), "--json").stdout)
    assert checked["layout"] == "truth-text"
    assert checked["labels"] == {"real": 2, "generated": 1}
    assert checked["n_unusable"] == 2
    asked = ["eval", str(tmp_path), "--trusted", "--protocol", "reality", "--model", "coin"]
    done = unreel(site, *asked, "--out", str(tmp_path / "run"), "--json")
    assert json.loads(done.stdout)["outcome"]["answers"]["done"] == 3
    named = unreel(site, "benchmarks", "check", str(tmp_path), "--layout", "truth-texts")
    assert named.returncode == 2
    assert "truth-text" in named.stderr


def test_a_kind_of_reviewers_of_another_package_opens_each_by_its_name(
    tmp_path: Path, clips: Path
) -> None:
    points = (
        "[unreel.reviewer_kinds]\nseeded = loud_edges:open_seeded\ncommand = loud_edges:nothing\n"
    )
    site = install(tmp_path, block("plugin-kind"), points)
    asked = ["eval", str(clips), "--trusted", "--protocol", "reality", "--model"]
    done = unreel(site, *asked, "seeded:7", "--out", str(tmp_path / "run"), "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["outcome"]["reviewer"] == "coin?seed=7"
    refused = unreel(site, *asked, "seeded:x", "--out", str(tmp_path / "other"))
    assert refused.returncode == 2
    assert "Write seeded:7" in refused.stderr
    unknown = unreel(site, *asked, "sown:7", "--out", str(tmp_path / "other"))
    assert unknown.returncode == 2
    assert "no reviewer is named 'sown:7'" in unknown.stderr
