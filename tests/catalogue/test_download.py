"""Public benchmarks by name, downloaded by the real `huggingface_hub` from a hub on loopback."""

import hashlib
import io
import json
import random
import subprocess
import sys
import time
import zipfile
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from hub import SHA, TOKEN, Hub, serve_hub
from miniatures import MINIATURES, build_loki_annotations, pack
from reliability.disk import small_disk
from unreel.api.benchmarks import CheckSettings, check_benchmark
from unreel.api.evaluation import EvalSettings, evaluate_run, plan_runs, score_run
from unreel.api.public_benchmarks import find_published_results
from unreel.api.score import ScoreSettings, score_stored_run
from unreel.catalogue.entries import get_benchmark, list_benchmarks
from unreel.cli.main import unreel
from unreel.core.errors import InvalidSettingError
from unreel.core.settings import read_environment_settings
from unreel.engine.progress import NO_CALLBACKS
from warm import Warm

ENTRIES = {entry.name: entry for entry in list_benchmarks()}
_DOWNLOAD_ALL = """
import sys
from pathlib import Path
from unreel.catalogue import download
from unreel.catalogue.entries import HubDownload, get_benchmark

folder, url, hashes = Path(sys.argv[1]), sys.argv[2], dict(zip(sys.argv[3::2], sys.argv[4::2]))
for name in {names}:
    entry = get_benchmark(name)
    linked = [
        file.model_copy(update={{"url": f"{{url}}/{{file.path}}", "sha256": hashes[file.path]}})
        for file in entry.download.linked
    ]
    entry = entry.model_copy(update={{"download": entry.download.model_copy(update={{"linked": linked}})}})
    download.run_download(download.plan_download(entry, folder / name, revision=None, parts=()))
"""


@pytest.fixture(scope="module")
def downloads(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A data folder into which all miniatures were downloaded by one process."""
    data = tmp_path_factory.mktemp("data")
    tables, loki = build_loki_annotations(), MINIATURES["loki"].repository
    shas = {
        MINIATURES[name].repository: str(entry.revision.setting).ljust(40, "5")
        for name, entry in ENTRIES.items()
        if name in MINIATURES and entry.revision and entry.revision.setting
    }
    with serve_hub(Hub({}, shas=shas)) as hub, pytest.MonkeyPatch.context() as environment:
        built = {each.repository: dict(each.build(hub.url)) for each in MINIATURES.values()}
        hub.repositories = built | {loki: built[loki] | tables}
        values = {"HF_ENDPOINT": hub.url, "HF_HOME": data / "hf", "XDG_DATA_HOME": data}
        for name, value in (values | {"UNREEL_FETCH_FROM": hub.url}).items():
            environment.setenv(name, str(value))
        environment.delenv("HF_HUB_OFFLINE", raising=False)
        hashes = [(path, hashlib.sha256(file).hexdigest()) for path, file in tables.items()]
        subprocess.run(
            [
                *(sys.executable, "-c", _DOWNLOAD_ALL.format(names=list(MINIATURES))),
                *(
                    read_environment_settings().benchmarks_folder,
                    f"{hub.url}/datasets/{loki}/resolve/main",
                ),
                *(word for pair in hashes for word in pair),
            ],
            check=True,
        )
        yield data


def test_every_benchmark_that_can_be_downloaded_has_a_miniature_and_defaults() -> None:
    assert {name for name, entry in ENTRIES.items() if entry.download} == set(MINIATURES)
    assert [name for name in MINIATURES if ENTRIES[name].evaluation is None] == []


@pytest.mark.parametrize("name", MINIATURES)
def test_a_downloaded_benchmark_is_checked_evaluated_and_scored_by_its_name(
    downloads: Path, tmp_path: Path, name: str
) -> None:
    miniature, folder = MINIATURES[name], downloads / "unreel" / "benchmarks" / name
    record = json.loads((folder / "unreel-download.json").read_text())
    assert record["is_complete"]
    assert record["n_bytes_received_twice"] == 0
    assert not [path for path in folder.rglob("*") if {".zip", ".part"} & {*path.suffixes}]
    checked = check_benchmark(CheckSettings(path=Path(name)))
    assert checked.is_sound
    assert checked.labels == miniature.labels
    (n_pairs,) = (each.n for each in checked.instruments if each.protocol == "preference")
    counts = (n_pairs, checked.n_traces, checked.n_rated)
    assert counts == (miniature.pairs, miniature.traces, miniature.rated)
    notes: list[str] = []
    settings = EvalSettings(benchmark=name, models=("coin",), out=str(tmp_path / "r"))
    (run,) = plan_runs(settings, notes.append)
    short = record["revision"][:12]
    assert notes == [f"{name}: commit {short} in {folder}; from the catalogue: {miniature.shown}"]
    evaluate_run(run, settings, NO_CALLBACKS)
    (scored,) = score_run(run)
    assert scored.scorecard.n_answered == miniature.asked
    published = find_published_results(run.benchmark_path, run.recipe.protocol, [scored.condition])
    assert published is not None
    assert bool(published.figures) is (name in {"deeptracereward", "video-reality-test"})
    assert published.differences["version"] == f"here commit {short}, published not stated"
    _, again, _ = score_stored_run(
        ScoreSettings(answers=str(tmp_path / "r"), benchmark=Path(name)), notes.append
    )
    assert [each.scorecard for each in again] == [scored.scorecard]


def test_what_the_user_gives_goes_before_the_catalogue(downloads: Path, tmp_path: Path) -> None:
    notes: list[str] = []

    def resolve(**given: Any) -> Any:
        settings = EvalSettings(
            benchmark="deeptracereward", models=("coin",), out=str(tmp_path), **given
        )
        (run,) = plan_runs(settings, notes.append)
        return run.recipe

    recipe = resolve(split="train", nframe=4)
    assert (recipe.split, recipe.condition[0].sampling) == ("train", "uniform-4")
    assert notes[-1].endswith("from the catalogue: protocol trace, prompt paper")
    recipe = resolve(protocol="reality", conditions=("prompt=direct",))
    assert (recipe.protocol, recipe.split, recipe.condition[0].prompt) == (
        "reality",
        "test",
        "direct",
    )
    assert notes[-1].endswith("from the catalogue: split test")
    (tmp_path / "recipe.toml").write_text('model = "coin"\nprotocol = "reality"\nsplit = "val"\n')
    assert resolve(recipe=tmp_path / "recipe.toml").split == "val"


def test_the_summary_has_published_figures_beside_those_measured_here(
    downloads: Path, tmp_path: Path
) -> None:
    command = ["eval", "deeptracereward", "--model", "coin", "--out", str(tmp_path / "r")]
    done = CliRunner().invoke(unreel, command)
    assert done.exit_code == 0, done.stderr
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert ["metric", "here", "published", "by"] in rows
    (overall,) = (row for row in rows if row[0] == "overall" and len(row) == 4)
    assert overall[2:] == ["6.5 to 70.2", "21 models"]
    words = "frames: here fps-2, published 2 frames per second where the model allows it"
    assert words in done.stderr
    document = json.loads(CliRunner().invoke(unreel, [*command, "--json"]).stdout)
    assert document["published"]["figures"]["overall"]["GPT 5"] == 35.5


def test_a_file_of_answers_is_scored_against_a_benchmark_by_name(
    downloads: Path, tmp_path: Path
) -> None:
    answers = tmp_path / "answers.jsonl"
    names = (f"source_videos/{part}/a.mp4" for part in ("Real", "Fake/LTX"))
    answers.write_text("".join(f'{{"name": "{name}", "text": "1"}}\n' for name in names))
    done = CliRunner().invoke(unreel, ["score", str(answers), "--benchmark", "vif-bench"])
    assert "commit 555555555555 in" in done.stderr
    assert "from the catalogue: protocol reality" in done.stderr
    assert "reality@2: 2 of 2 questions answered" in done.stderr


@pytest.fixture
def run(tmp_path: Path, warm: Warm, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    for name in ("HF_TOKEN", "HF_HUB_OFFLINE", "UNREEL_BENCHMARKS"):
        monkeypatch.delenv(name, raising=False)
    return partial(warm.run, cwd=tmp_path)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub with ViF-Bench, whose archive has a file of 3 MB that is no clip."""
    miniature = MINIATURES["vif-bench"]
    (packed,) = miniature.build("").values()
    noise = random.Random(1).randbytes(3_000_000)
    extra = pack({"source_videos/noise.bin": noise, **_read_zip(packed)})
    with serve_hub(Hub({miniature.repository: {"source_videos.zip": extra}})) as served:
        monkeypatch.setenv("HF_ENDPOINT", served.url)
        yield served


def _read_zip(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _require_complete(tmp_path: Path) -> dict[str, Any]:
    folder = tmp_path / "unreel" / "benchmarks" / "vif-bench"
    noise = (folder / "source_videos" / "noise.bin").read_bytes()
    assert noise == random.Random(1).randbytes(3_000_000)
    assert len((folder / "manifest.jsonl").read_text().splitlines()) == 6
    assert [path.name for path in folder.iterdir() if ".zip" in path.name] == []
    record: dict[str, Any] = json.loads((folder / "unreel-download.json").read_text())
    assert (record["revision"], record["is_complete"]) == (SHA, True)
    return record


UNREEL = (sys.executable, "-c", "from unreel.cli.main import main; main()")
GET = ("benchmarks", "get", "vif-bench")
N_KILLS = 20 if read_environment_settings().slow else 3


def test_a_killed_download_continues_and_fetches_nothing_twice(
    run, hub: Hub, tmp_path: Path
) -> None:
    (size,) = (len(data) for files in hub.repositories.values() for data in files.values())
    hub.bytes_per_s = 4e6
    draw, path = random.Random(N_KILLS), "source_videos.zip"
    for number in range(N_KILLS):
        reached = size * (number + draw.random()) / (N_KILLS + 1)
        command = [*UNREEL, *GET, "--yes"]
        with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL) as process:
            while hub.sent[path] < reached and process.poll() is None:
                time.sleep(0.01)
            process.kill()
    done = run(*GET, "--yes", "--json")
    assert done.returncode == 0, done.stderr
    _require_complete(tmp_path)
    n_twice = hub.sent[path] - size
    assert 0 <= n_twice <= N_KILLS << 18, "more than what was on its way at each kill"


def test_two_processes_at_once_download_each_file_once(run, hub: Hub, tmp_path: Path) -> None:
    command = [*UNREEL, *GET, "--yes"]
    hub.bytes_per_s = 3e6
    processes = [subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE) for _ in range(2)]
    errors = [process.communicate()[1].decode() for process in processes]
    assert [process.returncode for process in processes] == [0, 0], errors
    (size,) = (len(data) for files in hub.repositories.values() for data in files.values())
    assert hub.sent["source_videos.zip"] == size
    assert sum("waiting for another process" in error for error in errors) == 1
    _require_complete(tmp_path)


@pytest.mark.parametrize(
    ("mishaps", "ignores_range", "is_twice"),
    [(("429", "503", "truncated"), False, False), (("truncated",), True, True)],
)
def test_a_download_outlasts_a_busy_or_broken_server(
    run, hub: Hub, tmp_path: Path, mishaps, ignores_range, is_twice
) -> None:
    hub.mishaps, hub.ignores_range = {"source_videos.zip": deque(mishaps)}, ignores_range
    done = run(*GET, "--yes")
    assert done.returncode == 0, done.stderr
    assert (_require_complete(tmp_path)["n_bytes_received_twice"] > 0) is is_twice


def test_a_file_with_the_wrong_hash_is_not_kept(run, hub: Hub, tmp_path: Path) -> None:
    hub.mishaps = {"source_videos.zip": deque(["wrong"])}
    done = run(*GET, "--yes")
    assert done.returncode == 2
    assert "source_videos.zip: the file must have the hash" in done.stderr
    assert run(*GET, "--yes").returncode == 0
    _require_complete(tmp_path)


def test_a_gated_benchmark_names_its_page_and_the_token(
    run, hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.gated = frozenset(hub.repositories)
    done = run(*GET, "--yes")
    assert done.returncode == 2
    page = "https://huggingface.co/datasets/JoeLeelyf/ViF-Bench"
    assert f"Accept them at {page}, then set HF_TOKEN" in done.stderr
    assert f"access: accept the terms at {page}" in done.stderr
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    assert run(*GET, "--yes").returncode == 0
    _require_complete(tmp_path)


def test_offline_only_what_is_here_is_used(
    run, hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    done = run(*GET, "--yes")
    assert done.returncode == 2
    assert "not downloaded, and HF_HUB_OFFLINE is set" in done.stderr
    monkeypatch.delenv("HF_HUB_OFFLINE")
    assert run(*GET, "--yes").returncode == 0
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    done = run(*GET)
    assert done.returncode == 0, done.stderr
    assert "all files are in" in done.stderr


def test_a_disk_without_room_is_noticed_before_the_download(
    run, hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "disk").mkdir()
    with small_disk(tmp_path / "disk", megabytes=4) as disk:
        monkeypatch.setenv("UNREEL_BENCHMARKS", str(disk))
        done = run(*GET, "--yes")
        assert done.returncode == 2
        assert "No space left on device" in done.stderr
        assert hub.sent["source_videos.zip"] == 0


def test_nothing_is_downloaded_without_a_terminal_and_without_yes(run, hub: Hub) -> None:
    done = run(*GET)
    assert done.returncode == 2
    shown = ("commit 5555", "to download: 1 files, 3.1 MB", "free: ", "licence: mit", "not gated")
    assert [words for words in shown if words not in done.stderr] == []
    assert "--yes: required without a terminal" in done.stderr
    done = run("eval", "vif-bench", "--model", "coin", "--out", "r")
    assert (done.returncode, done.stdout) == (2, "")
    assert "not downloaded. Run `unreel benchmarks get vif-bench` first (8.83 GB)" in done.stderr


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("videorealbench", "No public location is known"),
        ("fakeparts", "hi-paris/FakeParts"),
        ("genvidbench", "7z"),
        ("aegis", "Clarifiedfish/AEGIS"),
    ],
)
def test_a_benchmark_that_is_not_downloaded_has_steps(run, name: str, words: str) -> None:
    done = run("benchmarks", "get", name)
    assert done.returncode == 2
    assert words in done.stdout
    assert f"{name}: unreel does not download this benchmark" in done.stderr
    with pytest.raises(InvalidSettingError, match=f"`unreel benchmarks get {name}`"):
        plan_runs(EvalSettings(benchmark=name, models=("coin",)))


@pytest.mark.parametrize("name", [entry.name for entry in list_benchmarks() if not entry.download])
def test_steps_mention_no_address_that_the_entry_does_not_state(name: str) -> None:
    entry = get_benchmark(name)
    stated = entry.hub_ids.value if entry.hub_ids and entry.hub_ids.value else ()
    named = [word.strip(",") for step in entry.by_hand for word in step.split() if "://" in word]
    assert [url for url in named if not url.endswith(tuple(stated))] == []
