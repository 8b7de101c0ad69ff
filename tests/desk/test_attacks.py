"""Hostile bundles, clients and files."""

import hashlib
import io
import json
import os
import shutil
import struct
import zipfile
from functools import partial
from pathlib import Path

import pytest

from unreel.core.errors import UnreadableSourceError
from unreel.desk import app, custody_bundle, worker
from unreel.desk.case_store import CaseStore
from unreel.desk.custody_bundle import iter_custody_bundle_bytes, verify_custody_bundle
from unreel.desk.worker import CaseReviewWorker

SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><animate/><script>window.hacked=1</script></svg>'
FACTS = {"reviewers": "a", "person": "anna", "batch": ""}


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """The bundle of one ended case."""
    store = CaseStore(tmp_path / "desk")
    case = store.add("one.mp4", io.BytesIO(b"x"), **FACTS)
    store.record(case, "finished")
    path = tmp_path / "bundle.zip"
    path.write_bytes(b"".join(iter_custody_bundle_bytes([case], None)))
    store.close()
    return path


def read_entries(bundle: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(bundle) as archive:
        return {each.filename: archive.read(each) for each in archive.infolist()}


def write_entries(bundle: Path, entries: list[tuple[zipfile.ZipInfo, bytes]]) -> None:
    with zipfile.ZipFile(bundle, "w") as archive:
        for entry, data in entries:
            archive.writestr(entry, data)


PATHS = ["../a", "/etc/a", "a/../../b", "..\\a", "C:\\a", "./a", "a//b", "a/", "MANIFEST.json"]
PATHS += ["a\n", "\x1b[31m", "\u202egnp.html", "-rf", "~/.ssh/config"]


@pytest.mark.parametrize("path", PATHS)
def test_a_listed_path_that_leads_elsewhere_is_found(bundle: Path, path: str) -> None:
    entries = read_entries(bundle) | {path: b"x"}
    manifest = json.loads(entries.pop("manifest.json"))
    manifest["files"][path] = hashlib.sha256(b"x").hexdigest()
    entries["manifest.json"] = json.dumps(manifest).encode()
    files = ((name, len(data), partial(io.BytesIO, data)) for name, data in entries.items())
    bundle.write_bytes(b"".join(custody_bundle._iter_zip_bytes(files, {})))
    assert verify_custody_bundle(bundle).problems[0].startswith("It is not an intact bundle: ")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_second_file_of_the_same_name_is_found(bundle: Path) -> None:
    entries = [(zipfile.ZipInfo(name), data) for name, data in read_entries(bundle).items()]
    write_entries(bundle, [(zipfile.ZipInfo("case.json"), b"forged"), *entries])
    assert "two files have the same name" in verify_custody_bundle(bundle).problems[0]


def test_a_link_in_a_bundle_is_found(bundle: Path) -> None:
    entries = [(zipfile.ZipInfo(name), data) for name, data in read_entries(bundle).items()]
    entries[0][0].external_attr = 0o120777 << 16
    write_entries(bundle, entries)
    assert not verify_custody_bundle(bundle).is_intact


def test_a_bundle_that_unpacks_to_more_than_its_size_is_not_read(bundle: Path) -> None:
    data = bytearray(bundle.read_bytes())
    at = data.index(b"PK\x01\x02")
    struct.pack_into("<II", data, at + 20, 1 << 31, 1 << 31)
    bundle.write_bytes(data)
    assert not verify_custody_bundle(bundle).is_intact
    with zipfile.ZipFile(bundle, "w", zipfile.ZIP_DEFLATED) as bomb:
        bomb.writestr("manifest.json", bytes(50 << 20))
    assert "compressed" in verify_custody_bundle(bundle).problems[0]


@pytest.mark.parametrize(
    "manifest",
    [
        b"[]",
        b'{"form": 1}',
        b'{"files": []}',
        b"\xff",
        b"[" * 9999,
        b'{"cases": ["x"], "files": 1}',
    ],
)
def test_a_malformed_manifest_is_a_problem(bundle: Path, manifest: bytes) -> None:
    entries = read_entries(bundle) | {"manifest.json": manifest}
    write_entries(bundle, [(zipfile.ZipInfo(name), data) for name, data in entries.items()])
    assert verify_custody_bundle(bundle).problems == (
        "It is not an intact bundle: the manifest is malformed.",
    )


def test_an_encrypted_entry_is_a_problem(bundle: Path) -> None:
    data = bytearray(bundle.read_bytes())
    for mark, offset in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
        data[data.index(mark) + offset] |= 1
    bundle.write_bytes(data)
    assert not verify_custody_bundle(bundle).is_intact


def test_a_pipe_is_no_bundle(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UnreadableSourceError, match="not a regular file"):
        verify_custody_bundle(tmp_path / "pipe")


def test_one_person_has_a_bounded_number_of_streams(open_desk, clip_bytes, monkeypatch) -> None:
    monkeypatch.setattr(app, "_MAX_STREAMS", 0)
    with open_desk() as desk:
        desk.drop(("a.mp4", clip_bytes(0)))
        assert desk.client.get("/events").status_code == 429


def test_names_of_files_add_no_header(open_desk, monkeypatch) -> None:
    monkeypatch.setattr(CaseReviewWorker, "start", lambda _worker: None)
    with open_desk() as desk:
        for name in ('a"; filename=evil.html\r\nx-evil: 1.mp4', "\u4e2d" * 85 + ".mp4"):
            case = desk.service.store.add(name, io.BytesIO(b"x"), **FACTS)
            reply = desk.client.get(f"/cases/{case.id}/original")
            assert reply.status_code == 200
            assert "x-evil" not in reply.headers
            assert reply.headers["content-disposition"].startswith("attachment; filename*=utf-8''")
            assert case.name in desk.client.get(f"/cases/{case.id}/").text.replace("&#34;", '"')


def test_files_without_a_picture_are_failed_cases(open_desk, audio_bytes) -> None:
    with open_desk() as desk:
        desk.drop(("a.mp4", SVG), ("b.mp4", b""), ("sound.mp4", audio_bytes))
        cases = desk.wait()
        assert [case.stage for case in cases] == ["failed"] * 3
        for case in cases:
            assert case.sentence.startswith("Not reviewed: ")
            page = desk.client.get(f"/cases/{case.id}/").text
            assert "<animate" not in page
            reply = desk.client.get(f"/cases/{case.id}/original")
            assert reply.headers["content-type"] == "application/octet-stream"


@pytest.fixture
def audio_bytes() -> bytes:
    """An MP4 file with sound and without a picture."""
    import av
    import numpy as np

    into = io.BytesIO()
    with av.open(into, "w", format="mp4") as container:
        stream = container.add_stream("aac", rate=44100)
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), "fltp", "mono")
        frame.sample_rate = 44100
        for packet in (*stream.encode(frame), *stream.encode(None)):
            container.mux(packet)
    return into.getvalue()


def test_a_case_can_be_deleted_from_a_full_disk(open_desk, monkeypatch) -> None:
    monkeypatch.setattr(CaseReviewWorker, "start", lambda _worker: None)

    def fail(*_arguments: object, **_fields: object) -> None:
        raise OSError(28, "No space left on device")

    with open_desk() as desk:
        case = desk.service.store.add("a.mp4", io.BytesIO(b"x"), **FACTS)
        monkeypatch.setattr(desk.service.store, "record", fail)
        form = {"form_token": desk.token}
        assert desk.client.post(f"/cases/{case.id}/delete", data=form).status_code == 200
        assert not case.folder.exists()


@pytest.mark.parametrize("n_failures", [1, 3])
def test_a_case_goes_on_when_the_disk_has_space_again(
    open_desk, clip_bytes, monkeypatch, n_failures: int
) -> None:
    """The disk is full when the review starts, or when it writes its evidence."""
    record, failed = CaseStore.record, []

    def fail(store: CaseStore, case: object, event: str, *rest: object, **fields: object) -> None:
        if event == ("started" if n_failures == 1 else "keyframes") and len(failed) < n_failures:
            failed.append(event)
            raise OSError(28, "No space left on device")
        record(store, case, event, *rest, **fields)

    monkeypatch.setattr(worker, "_RETRY_S", 0.5)
    monkeypatch.setattr(CaseStore, "record", fail)
    with open_desk() as desk:
        desk.drop(("a.mp4", clip_bytes(0)))
        page = ""
        while "The disk is full" not in page:
            page = desk.client.get("/").text
        (case,) = desk.wait()
        assert (case.stage, len(failed)) == ("done", n_failures)


def test_a_long_list_names_the_hidden_cases(open_desk, monkeypatch) -> None:
    monkeypatch.setattr(CaseReviewWorker, "start", lambda _worker: None)
    with open_desk() as desk:
        case = desk.service.store.add("a.mp4", io.BytesIO(b"x"), **(FACTS | {"batch": "b"}))
        for n in range(250):
            folder = case.folder.with_name(f"{n:016x}")
            shutil.copytree(case.folder, folder)
    with open_desk() as desk:
        for path in ("/", "/batches/b/"):
            assert "51 older cases are not listed" in desk.client.get(path).text
