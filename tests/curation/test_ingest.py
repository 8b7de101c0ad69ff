"""Raw video comes in from wherever it lies, with its rights, and bad files are told, not lost."""

import csv
import json
import shutil
from pathlib import Path

import pytest

from unreel.benchmarks.entry import Rejected
from unreel.core.clip import Generated, Real
from unreel.core.settings import read_environment_settings
from unreel.curation.curation_run import run_curation
from unreel.curation.recipe import SourceRecipeSection
from unreel.curation.source_clips import SourceClip, SourceReadContext, list_source_clips
from unreel.engine.location import StorageLocation
from unreel.engine.storage_access import ClipAccessSettings


@pytest.fixture
def listed(tmp_path):
    """The clips that a source names, by name."""

    def read(options=None, **section) -> dict[str, SourceClip | Rejected]:
        access = ClipAccessSettings(settings=read_environment_settings(), storage=options or {})
        around = SourceReadContext(
            root=tmp_path, access=access, place=StorageLocation(str(tmp_path / "kept"))
        )
        rows = list(list_source_clips([SourceRecipeSection(**section)], around))
        return {row.name if isinstance(row, Rejected) else row.entry.name: row for row in rows}

    return read


def test_folders_of_real_and_generated_clips_name_their_creators(footage, listed) -> None:
    found = listed(path=str(footage), licence="CC0", source="own footage")
    assert len(found) == 10
    assert found["real/clip1.mp4"].entry.origin == Real()
    assert found["generated/Veo/clip2.mp4"].entry.origin == Generated("Veo")
    assert {one.entry.licence for one in found.values()} == {"CC0"}
    assert {one.entry.source for one in found.values()} == {"own footage"}


def test_a_plain_folder_takes_its_label_from_the_recipe(footage, listed) -> None:
    found = listed(path=str(footage / "generated"), label="generated", creator="Pika")
    assert len(found) == 5
    assert {one.entry.origin for one in found.values()} == {Generated("Pika")}


def test_a_list_has_its_own_columns_and_its_rows_go_before_the_defaults(
    footage, tmp_path, listed
) -> None:
    shutil.copytree(footage, tmp_path / "films")
    with (tmp_path / "films" / "list.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["who", "where", "kind", "rights"])
        rows.writerow(["a", "real/clip1.mp4", "real", ""])
        rows.writerow(["b", "generated/Veo/clip2.mp4", "generated", "CC BY 4.0"])
        rows.writerow(["c", "../../elsewhere.mp4", "real", ""])
        rows.writerow(["d", "real/clip3.mp4", "perhaps", ""])
    columns = {"name": "who", "location": "where", "label": "kind", "licence": "rights"}
    found = listed(path="films/list.csv", columns=columns, licence="CC0", creator="Veo", name="one")
    assert found["one/a"].entry.licence == "CC0"
    assert found["one/b"].entry.licence == "CC BY 4.0"
    assert found["one/b"].entry.origin == Generated("Veo")
    assert "inside the benchmark's folder" in found["one/c"].why
    assert "label cannot be" in found["one/d"].why


def test_a_video_folder_of_a_hub_is_read_split_by_split(footage, tmp_path, listed) -> None:
    for split, number in (("train", 1), ("test", 3)):
        folder = tmp_path / "hub" / split
        folder.mkdir(parents=True)
        shutil.copy(footage / "real" / f"clip{number}.mp4", folder)
        row = {"file_name": f"clip{number}.mp4", "license": "MIT"}
        (folder / "metadata.jsonl").write_text(json.dumps(row) + "\n")
    found = listed(path="hub", label="real")
    assert set(found) == {"train/clip1.mp4", "test/clip3.mp4"}
    assert found["test/clip3.mp4"].entry.licence == "MIT"
    assert found["test/clip3.mp4"].entry.split == ""
    assert Path(found["test/clip3.mp4"].location).is_file()


def test_a_rejected_file_is_quarantined_with_its_reason(
    footage, tmp_path, curation, quarantine
) -> None:
    films = tmp_path / "films"
    shutil.copytree(footage, films)
    whole = (films / "real" / "clip1.mp4").read_bytes()
    (films / "real" / "broken.mp4").write_bytes(whole[: len(whole) // 3])
    (films / "real" / "notes.mp4").write_text("not a video")
    (films / "real" / "again.mp4").write_bytes(whole)
    (films / "generated" / "Veo" / "both.mp4").write_bytes((films / "real/clip3.mp4").read_bytes())
    job = curation({"path": "films"})
    state = run_curation(job, until="ingest")
    told = quarantine(job)
    assert told.pop("real/clip1.mp4") == "ingest: duplicate"
    assert told.pop("real/broken.mp4").startswith("ingest: ")
    assert told.pop("real/notes.mp4") == "ingest: format-refused"
    assert told.pop("real/clip3.mp4") == "ingest: contradiction"
    assert told.pop("generated/Veo/both.mp4") == "ingest: contradiction"
    assert told == {}
    assert len(state.segments) == 9
    assert state.n_failed == 4


def test_names_of_two_sources_may_meet_under_their_prefixes(footage, curation) -> None:
    path = str(footage)
    job = curation([{"path": path, "name": "one"}, {"path": path, "name": "two"}])
    state = run_curation(job, until="ingest")
    assert {piece.entry.name.partition("/")[0] for piece in state.segments} == {"one"}
    assert state.reasons == {"ingest: duplicate": 10}


def test_a_changed_file_is_hashed_again_and_the_others_are_not(footage, tmp_path, curation) -> None:
    shutil.copytree(footage, tmp_path / "films")
    job = curation({"path": "films"})
    before = {
        piece.entry.name: piece.clip.id for piece in run_curation(job, until="ingest").segments
    }
    table = job.context.table("ingest")
    (tmp_path / "films/real/clip1.mp4").write_bytes(
        (footage / "real/clip5.mp4").read_bytes() + b" "
    )
    after = {
        piece.entry.name: piece.clip.id for piece in run_curation(job, until="ingest").segments
    }
    assert [name for name in before if before[name] != after[name]] == ["real/clip1.mp4"]
    assert table.count() == 11


@pytest.fixture(scope="module")
def bucket(s3, footage):
    """The footage below a prefix of a store."""
    prefix = s3 / "films"
    store = prefix.objects()
    for path in footage.rglob("*.mp4"):
        store.put(path.relative_to(footage).as_posix(), path)
    return prefix


def test_a_prefix_of_a_store_is_listed_once(bucket, listed) -> None:
    found = listed(bucket.options, path=bucket.uri, licence="CC0")
    assert len(found) == 10
    assert found["generated/Veo/clip2.mp4"].entry.origin == Generated("Veo")
    bucket.objects().put("real/late.mp4", b"late")
    try:
        assert listed(bucket.options, path=bucket.uri, licence="CC0") == found
    finally:
        bucket.objects().delete("real/late.mp4")


def test_clips_of_a_store_give_the_same_benchmark_as_those_of_a_folder(
    bucket, footage, curation, tree
) -> None:
    here = curation({"path": str(footage)}, out="here")
    there = curation({"path": bucket.uri}, out="there")
    from dataclasses import replace

    access = replace(there.context.access, storage=bucket.options)
    run_curation(here)
    run_curation(replace(there, context=replace(there.context, access=access)))
    trees = [tree(job.context.place.path / "benchmark") for job in (here, there)]
    told = {"README.md", "recipe.json", "checksums.sha256"}  # they tell where clips came from
    assert {name for name in trees[0] if trees[0][name] != trees[1][name]} == told
