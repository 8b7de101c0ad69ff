"""`unreel review --record RUN`: how often a reviewer was right, beside what it says now."""

import json
from pathlib import Path

import pytest

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")

from report.reported import ask, entry, lay_out


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A run in which always-real was asked about four clips, half of them generated."""
    rows = [entry("a"), entry("b"), entry("c", "maker"), entry("d", "maker")]
    bench = lay_out(tmp_path / "four-clips", rows)
    shown = [{"sampling": "uniform-8"}]
    ask(tmp_path / "kept", bench, model="always-real", protocol="reality", condition=shown)
    return tmp_path / "kept"


def test_its_figure_stands_beside_the_reviewer_with_doubt_and_benchmark(run, clip, kept) -> None:
    asked = ("review", clip, "--protocol", "reality", "--trusted", "--record", kept)
    done = run(*asked, "--model", "always-real", "--model", "coin", "--out", "e")
    assert done.returncode == 0, done.stderr
    told = " ".join(done.stdout.split())
    assert "Balanced accuracy 50.0 % (95% interval" in told
    assert "Generated caught 0.0 %" in told
    assert "Real trusted 100.0 %" in told
    assert "On four-clips" in told
    assert "Measured accuracy: not known; none of the given runs has this reviewer." in told
    result = json.loads(Path(kept.parent, "e", "result.json").read_text(encoding="utf-8"))
    first, other = result["opinions"]
    assert first["figures"][0]["metric"] == "balanced"
    assert first["figures"][0]["value"] == 50.0
    assert other["figures"] == []


def test_a_folder_without_a_run_is_refused_before_anybody_is_asked(run, clip, tmp_path) -> None:
    done = run("review", clip, "--model", "coin", "--record", tmp_path)
    assert done.returncode == 2
    assert "contains no run" in done.stderr
    assert done.stdout == ""
