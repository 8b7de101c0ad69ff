"""A frozen benchmark: read back by us and by others, the same bytes for the same clips."""

import hashlib
import shutil
from pathlib import Path

import pytest

from benchmarks.census import take_census
from unreel.benchmarks.loader import open_benchmark
from unreel.core.content_ids import compute_clip_id
from unreel.core.errors import InvalidSettingError, UnreadableSourceError
from unreel.core.output_files import OutputDirectory
from unreel.core.settings import read_environment_settings
from unreel.curation.curation_run import run_curation
from unreel.curation.freeze.media import BenchmarkMedia, copy_benchmark_media
from unreel.curation.freeze.step import run_freeze_step
from unreel.curation.hub_dataset import write_hub_dataset
from unreel.curation.recipe import FreezeRecipeSection
from unreel.curation.segment import CurationJob, SegmentWorkDirectory, SortedRunWriter
from unreel.curation.step_execution import CurationContext
from unreel.engine.location import StorageLocation
from unreel.engine.storage_access import ClipAccessSettings
from unreel.evaluation.recipe import validate_eval_recipe as check_run
from unreel.evaluation.run_job import EvalRun, evaluate


def test_it_is_read_back_with_labels_creators_rights_and_splits(footage, curation) -> None:
    job = curation({"path": str(footage), "licence": "CC0", "source": "us"})
    frozen = run_curation(job).frozen
    benchmark = open_benchmark(job.context.place.path / "benchmark")
    census = take_census(benchmark)
    assert census.n_rejected == 0
    assert census.n_entries == 10 == sum(frozen.clips.values())
    entries = {entry.name: entry for entry in benchmark}
    assert entries["generated/Veo/clip2.mp4"].origin.creator == "Veo"
    assert {entry.licence for entry in entries.values()} == {"CC0"}
    assert {entry.split for entry in entries.values()} == {"train", "val", "test"}
    assert entries["real/clip1.mp4"].facts.n_frames == 25


def test_a_reviewer_can_be_evaluated_on_it(footage, curation, tmp_path) -> None:
    job = curation({"path": str(footage)})
    run_curation(job)
    values = {
        "benchmark": str(job.context.place.path / "benchmark"),
        "protocol": "reality",
        "model": "coin",
    }
    run = EvalRun(
        place=StorageLocation(str(tmp_path / "run")),
        recipe=check_run(values),
        access=ClipAccessSettings(settings=read_environment_settings(), trusted=True),
        ledgers=tmp_path / "run",
    )
    assert evaluate(run).answers.done == 10


def test_every_file_has_its_checksum(footage, curation, tree) -> None:
    job = curation({"path": str(footage)})
    run_curation(job)
    folder = job.context.place.path / "benchmark"
    lines = (folder / "checksums.sha256").read_text().splitlines()
    stated = {name: value for value, name in (line.split("  ", 1) for line in lines)}
    found = tree(folder)
    del found["checksums.sha256"]
    assert stated == found


def test_the_same_clips_give_the_same_bytes_whatever_their_order(
    footage, curation, tmp_path, tree
) -> None:
    real, generated = (
        {"path": str(footage / side), "label": label, "name": side}
        for side, label in (("real", "real"), ("generated", "generated"))
    )
    first = curation([real, generated], out="first")
    second = curation([generated, real], out="second")
    run_curation(first)
    run_curation(second)
    trees = [tree(job.context.place.path / "benchmark") for job in (first, second)]
    told = {"README.md", "recipe.json", "checksums.sha256"}  # the recipe itself differs
    assert trees[0].keys() == trees[1].keys()
    assert {name for name in trees[0] if trees[0][name] != trees[1][name]} <= told


def test_freezing_again_changes_nothing_and_takes_strays_away(footage, curation, tree) -> None:
    job = curation({"path": str(footage)})
    frozen = run_curation(job).frozen
    folder = job.context.place.path / "benchmark"
    before = tree(folder)
    (folder / "train" / "stray.mp4").write_bytes(b"stray")
    again = run_curation(job).frozen
    assert tree(folder) == before
    assert again == frozen


def test_a_file_that_changed_since_it_was_ingested_is_not_frozen(
    footage, curation, tmp_path
) -> None:
    shutil.copytree(footage, tmp_path / "films")
    job = curation({"path": "films"})
    state = run_curation(job, until="ingest")
    path = tmp_path / "films/real/clip1.mp4"
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    work = CurationJob(recipe=job.recipe, root=job.root, context=job.context)
    with pytest.raises(UnreadableSourceError, match="not the one that was ingested"):
        run_freeze_step(FreezeRecipeSection(shares=(3, 1, 1)), work, state)
    assert not (job.context.place.path / "benchmark/checksums.sha256").exists()


def lost_among_many(
    curation, tmp_path: Path, *, n_clips: int
) -> tuple[BenchmarkMedia, CurationContext]:
    """One file under many names, the first of which leads nowhere."""
    film = tmp_path / "film.mp4"
    film.write_bytes(b"a film")
    runs = SortedRunWriter(OutputDirectory(tmp_path), "media")
    for number in range(n_clips):
        place = film if number else tmp_path / "gone.mp4"
        runs.add((f"train/media/{number:04}.mp4", compute_clip_id(film), str(place), 6))
    return BenchmarkMedia(OutputDirectory(tmp_path), runs.end()), curation(
        {"path": "films"}
    ).context


def test_copying_ends_at_the_first_file_that_is_lost(curation, tmp_path) -> None:
    media, bench = lost_among_many(curation, tmp_path, n_clips=1_000)
    target = bench.place / "benchmark"
    with pytest.raises(UnreadableSourceError, match=r"gone\.mp4.*Restore it"):
        copy_benchmark_media(media, target, bench)
    assert len(target.names()) < 500


def test_a_target_that_cannot_be_written_to_is_not_blamed_on_the_source(curation, tmp_path) -> None:
    media, bench = lost_among_many(curation, tmp_path, n_clips=1)
    (tmp_path / "gone.mp4").write_bytes(b"a film")
    target = bench.place / "benchmark"
    (target.path / "train").mkdir(parents=True)
    (target.path / "train/media").symlink_to(tmp_path)
    with pytest.raises(UnreadableSourceError, match="is a link") as told:
        copy_benchmark_media(media, target, bench)
    assert "cannot be copied" in str(told.value)
    assert "Restore it" not in str(told.value)


def test_nothing_to_freeze_is_told_and_the_reasons_are_kept(tmp_path, curation, quarantine) -> None:
    (tmp_path / "films").mkdir()
    (tmp_path / "films/a.mp4").write_text("no video")
    job = curation({"path": "films", "label": "real"})
    with pytest.raises(InvalidSettingError, match="no clip is left"):
        run_curation(job)
    assert quarantine(job) == {"a.mp4": "ingest: format-refused"}


def test_the_card_tells_sources_licences_and_what_was_left_out(footage, curation, tmp_path) -> None:
    shutil.copytree(footage, tmp_path / "films")
    (tmp_path / "films/real/bad.mp4").write_text("no video")
    job = curation({"path": "films", "licence": "CC0 | not [a] <table>"})
    run_curation(job)
    card = (job.context.place.path / "benchmark/README.md").read_text()
    assert "| real | 5 |" in card
    assert "| Veo | 2 |" in card
    assert r"| CC0 \| not \[a\] \<table\> | 10 |" in card
    assert "| ingest | format-refused | 1 |" in card
    assert "128 x 96" in card
    assert str(tmp_path) not in card


def test_the_folder_holds_no_path_of_this_machine(footage, curation, tmp_path) -> None:
    job = curation({"path": str(footage)})
    run_curation(job)
    folder = job.context.place.path / "benchmark"
    texts = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".mp4"]
    assert len(texts) >= 5
    for path in texts:
        assert str(tmp_path).encode() not in path.read_bytes()
        assert str(footage).encode() not in path.read_bytes()


def test_first_frames_are_published_where_asked_for(footage, curation) -> None:
    job = curation({"path": str(footage)}, freeze={"first_frames": True, "shares": [3, 1, 1]})
    run_curation(job)
    folder = job.context.place.path / "benchmark"
    clips = {path.stem for path in folder.rglob("media/*/*.mp4")}
    pictures = {path.stem for path in folder.rglob("first_frames/*/*.jpg")}
    assert pictures == clips
    assert len(list(open_benchmark(folder))) == 10


def test_media_can_stay_where_they_lie(footage, curation, tmp_path) -> None:
    here = {"media": "in_place", "shares": [3, 1, 1], "labels": []}
    job = curation({"path": str(footage)}, freeze=here)
    frozen = run_curation(job).frozen
    folder = job.context.place.path / "benchmark"
    assert not list(folder.rglob("*.mp4"))
    lines = (folder / "checksums.sha256").read_text().splitlines()
    stated = {name: value for value, name in (line.split("  ", 1) for line in lines)}
    clips = [name for name in stated if name.endswith(".mp4")]
    assert len(clips) == 10
    for name, value in stated.items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == value
    benchmark = open_benchmark(folder, outside=True)
    assert {benchmark.find(entry) for entry in benchmark} == set(clips)
    assert run_curation(job).frozen == frozen


def test_a_benchmark_whose_media_lie_elsewhere_is_not_published(footage, curation) -> None:
    here = {"media": "in_place", "shares": [3, 1, 1], "labels": []}
    job = curation({"path": str(footage), "licence": "CC0"}, freeze=here)
    run_curation(job)
    with pytest.raises(InvalidSettingError, match="in other folders"):
        write_hub_dataset(
            job.context.place.path, accept_leak=True, accept_no_licence=True, out=None, repo=None
        )


def test_a_second_curation_of_the_same_folder_is_refused_while_one_works(footage, curation) -> None:
    job = curation({"path": str(footage)})
    with (
        SegmentWorkDirectory.of(job.context).lock(),
        pytest.raises(UnreadableSourceError, match="another run"),
    ):
        run_curation(job)
