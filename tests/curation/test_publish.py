"""A folder for a hub: licences told, every byte checked, read by others as it is, and never sent."""

import hashlib
import json
import socket
from pathlib import Path

import pytest

from unreel.core.errors import InvalidSettingError, UnreadableSourceError
from unreel.curation.curation_run import run_curation
from unreel.curation.hub_dataset import find_hub_licence_id, write_hub_dataset
from unreel.curation.recipe import SPLITS

CITED = {"authors": ["Doe, Jane"], "year": 2026, "url": "https://example.org"}
FREEZE = {"version": "1.0", "shares": [3, 1, 1], "citation": CITED, "first_frames": True}


@pytest.fixture
def frozen(footage, curation):
    """Freezes the footage; gives the working folder."""

    def make(**changes) -> Path:
        source = {"path": str(footage), "licence": "CC BY 4.0", "source": "our own films"}
        job = curation(source | changes.pop("source", {}), freeze=FREEZE | changes)
        run_curation(job)
        return job.context.place.path

    return make


def made(folder: Path, *, out: Path | None = None, repo: str | None = None, **accepted: bool):
    return write_hub_dataset(folder, **accepted, out=out, repo=repo)


def header(card: Path) -> dict:
    yaml = pytest.importorskip("yaml")
    return yaml.safe_load(card.read_text().split("---\n")[1])


def test_the_folder_is_whole_and_its_card_tells_a_hub_what_it_needs(frozen, tree) -> None:
    done = made(frozen(), repo="lab/films")
    assert done.folder.name == "hub"
    assert done.n_clips == 10
    assert done.licences == {"CC BY 4.0": 10}
    told = header(done.folder / "README.md")
    assert told["license"] == "cc-by-4.0"
    assert told["size_categories"] == ["n<1K"]
    assert [one["split"] for one in told["configs"][0]["data_files"]] == [
        "train",
        "validation",
        "test",
    ]
    assert "| CC BY 4.0 | our own films | 10 |" in (done.folder / "LICENSE.md").read_text()
    assert 'family-names: "Doe"' in (done.folder / "CITATION.cff").read_text()
    lines = (done.folder / "checksums.sha256").read_text().splitlines()
    stated = {name: value for value, name in (line.split("  ", 1) for line in lines)}
    found = tree(done.folder)
    del found["checksums.sha256"]
    assert stated == found
    assert done.commands[-1] == (
        f"hf upload lab/films {done.folder} . --repo-type dataset --private"
    )


def test_dataset_libraries_read_it_by_its_card(frozen, tmp_path, monkeypatch) -> None:
    datasets = pytest.importorskip("datasets", reason="needs `datasets`")
    done = made(frozen())
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    found = datasets.load_dataset(str(done.folder), cache_dir=str(tmp_path / "cache"))
    assert {split: len(rows) for split, rows in found.items()} == {
        "train": 6,
        "validation": 2,
        "test": 2,
    }
    assert set(found["test"]["label"]) == {"real", "generated"}
    assert set(found["test"]["licence"]) == {"CC BY 4.0"}


def test_nothing_is_sent_and_the_benchmark_stays_as_it_was(frozen, tree, monkeypatch) -> None:
    folder = frozen()
    before = tree(folder / "benchmark")

    def refuse(*_: object) -> None:
        pytest.fail("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    made(folder)
    assert tree(folder / "benchmark") == before


def test_clips_without_a_licence_are_refused_unless_that_is_accepted(frozen) -> None:
    folder = frozen(source={"licence": ""})
    with pytest.raises(InvalidSettingError, match=r"10 clips have no licence.*--accept-no-licence"):
        made(folder)
    assert not (folder / "hub").exists()
    told = header(made(folder, accept_no_licence=True).folder / "README.md")
    assert (told["license"], told["license_link"]) == ("other", "LICENSE.md")


def test_a_leak_is_refused_unless_it_is_accepted(frozen) -> None:
    folder = frozen()
    audit = folder / "benchmark" / "audit.json"
    data = json.dumps({"finding": "leaks"})
    sums = folder / "benchmark" / "checksums.sha256"
    old, new = (hashlib.sha256(text.encode()).hexdigest() for text in (audit.read_text(), data))
    audit.write_text(data)
    sums.write_text(sums.read_text().replace(old, new))
    with pytest.raises(InvalidSettingError, match=r"the labels leak.*--accept-leak"):
        made(folder)
    assert made(folder, accept_leak=True).n_clips == 10


@pytest.mark.parametrize("how", ["changed", "gone", "linked", "linked inside"])
def test_a_benchmark_that_is_not_as_it_was_frozen_is_refused(frozen, how, tmp_path) -> None:
    folder = frozen()
    clip = next((folder / "benchmark" / SPLITS[0]).rglob("*.mp4"))
    if how == "changed":
        clip.write_bytes(clip.read_bytes() + b"?")
    elif how == "gone":
        clip.unlink()
    else:
        place = (clip.parent if how == "linked inside" else tmp_path) / "elsewhere.mp4"
        clip.rename(place)
        clip.symlink_to(place)
    with pytest.raises(UnreadableSourceError):
        made(folder)
    assert not (folder / "hub").exists()


def test_a_link_in_the_place_of_the_folder_is_not_followed(frozen, tmp_path) -> None:
    folder = frozen()
    (tmp_path / "empty").mkdir()
    (folder / "hub").symlink_to(tmp_path / "empty")
    with pytest.raises(InvalidSettingError, match="is there already"):
        made(folder)
    assert list((tmp_path / "empty").iterdir()) == []


def test_a_folder_that_holds_something_is_not_touched(frozen, tmp_path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "note").write_text("keep")
    with pytest.raises(InvalidSettingError, match="is there already"):
        made(frozen(), out=tmp_path / "mine")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["note"]


@pytest.mark.parametrize(
    ("said", "known"),
    [
        ("CC BY 4.0", "cc-by-4.0"),
        ("CC0", "cc0-1.0"),
        ("cc_by_nc_sa_4.0", "cc-by-nc-sa-4.0"),
        ("MIT", "mit"),
        ("all rights reserved", None),
    ],
)
def test_licences_in_the_words_of_a_hub(said, known) -> None:
    assert find_hub_licence_id(said) == known
