"""Retention, damaged cases and the chain of the log."""

import io
import json
import time
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from unreel.desk import case_store
from unreel.desk.case_store import CaseStore
from unreel.desk.worker import CaseReviewWorker

FACTS = {"reviewers": "a", "person": "anna", "batch": ""}


def add_ended_case(store: CaseStore, name: str = "a.mp4") -> case_store.CaseRecord:
    case = store.add(name, io.BytesIO(name.encode()), **FACTS)
    store.record(case, "entry", "berta", text="seen before", verdict="real")
    store.record(case, "finished", files={})
    return case


def read_again(root: Path) -> list[case_store.CaseRecord]:
    store = CaseStore(root)
    store.close()
    return store.select()


@pytest.fixture
def late_clock(monkeypatch) -> None:
    """The clock of the desk is ten years ahead."""

    class Late(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.now(tz) + timedelta(days=3650)

    monkeypatch.setattr(case_store, "datetime", Late)


def test_a_wrong_clock_moves_a_tenth_of_the_cases_to_the_trash(open_desk, request) -> None:
    with open_desk() as desk:
        cases = [add_ended_case(desk.service.store, f"{n}.mp4") for n in range(25)]
    request.getfixturevalue("late_clock")
    with open_desk(retain_days=7) as desk:
        assert "are moved to the trash after 7 days" in desk.client.get("/").text
        until_s = time.monotonic() + 20
        while len(desk.service.store.select()) > 23 and time.monotonic() < until_s:
            time.sleep(0.05)
        time.sleep(0.2)
        assert "2 cases are in the folder <code>trash</code>" in desk.client.get("/").text
        assert len(desk.service.store.select()) == 23
        root = desk.service.settings.cases
    for case in cases[:2]:
        assert (root / "trash" / case.id / "original" / case.name).is_file()
        tombstone = json.loads((root / "trash" / f"{case.id}.json").read_text())
        assert (tombstone["name"], tombstone["sha256"]) == (case.name, case.clip)
        assert tombstone["reason"] == "older than 7 days (retain_days)"
    assert all(case.original.is_file() for case in cases[2:])


def test_one_case_of_few_may_go_and_cases_under_review_stay(tmp_path, request) -> None:
    store = CaseStore(tmp_path)
    first, second = add_ended_case(store), add_ended_case(store, "b.mp4")
    store.record(first, "again", "anna")
    request.getfixturevalue("late_clock")
    store.move_old_to_trash(7)
    assert [case.id for case in store.select()] == [first.id]
    assert (tmp_path / "trash" / second.id / "log.jsonl").is_file()
    store.close()


DAMAGES = {
    "empty": lambda lines: b"",
    "unparseable": lambda lines: b"\x00\xff" * 40,
    "without its first line": lambda lines: b"".join(lines[1:]),
    "without a line": lambda lines: b"".join([lines[0], *lines[2:]]),
    "without its end": lambda lines: b"".join(lines[:-1]),
    "with a changed verdict": lambda lines: b"".join(lines).replace(b'"real"', b'"generated"'),
    "with a changed last line": lambda lines: b"".join(lines).replace(b"finished", b"failed"),
    "with a changed person": lambda lines: b"".join(lines).replace(b"anna", b"otto"),
    "without hashes": lambda lines: b"".join(
        json.dumps({k: v for k, v in json.loads(line).items() if k != "before"}).encode() + b"\n"
        for line in lines
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_log_stops_nothing_and_deletes_nothing(tmp_path, damage: str) -> None:
    store = CaseStore(tmp_path)
    case, other = add_ended_case(store), add_ended_case(store, "b.mp4")
    store.close()
    log = case.folder / "log.jsonl"
    data = DAMAGES[damage](log.read_bytes().splitlines(keepends=True))
    log.write_bytes(data)
    for _ in range(2):
        shown = {each.id: each for each in read_again(tmp_path)}
        assert "log" in shown[case.id].damage
        assert (shown[case.id].name, shown[case.id].decision) == ("a.mp4", None)
        assert shown[other.id].decision is not None
        assert log.read_bytes() == data
        assert case.original.is_file()


def test_a_case_without_a_log_is_shown_and_an_interrupted_upload_is_not(tmp_path) -> None:
    store = CaseStore(tmp_path)
    case = add_ended_case(store)
    store.close()
    (case.folder / "log.jsonl").unlink()
    unfinished = case.folder.with_name("0123456789abcdef") / "original"
    unfinished.mkdir(parents=True)
    (unfinished / ".unreel-0123").write_bytes(b"x")
    (shown,) = read_again(tmp_path)
    assert shown.damage == "the log of the case is missing, empty or unreadable"
    assert not unfinished.exists()


def test_a_damaged_case_is_shown_without_verdict_and_bundle(open_desk, monkeypatch) -> None:
    monkeypatch.setattr(CaseReviewWorker, "start", lambda _worker: None)
    with open_desk() as desk:
        case = add_ended_case(desk.service.store, "<b>.mp4")
    (case.folder / "log.jsonl").write_bytes(b"")
    with open_desk() as desk:
        page = desk.client.get("/").text
        assert "Damaged: the log of the case is missing, empty or unreadable." in page
        page = desk.client.get(f"/cases/{case.id}/").text
        assert "This case is damaged: the log of the case is missing, empty or unreadable." in page
        assert "<b>.mp4" not in page
        assert "seen before" not in page
        for path in ("bundle.zip", "original", "evidence.pdf", "result.json"):
            assert desk.client.get(f"/cases/{case.id}/{path}").status_code == 409, path
        form = {"form_token": desk.token, "text": "x", "verdict": "real"}
        assert desk.client.post(f"/cases/{case.id}/entries", data=form).status_code == 409
        assert case.original.is_file()
        desk.client.post(f"/cases/{case.id}/delete", data=form)
        assert not case.folder.exists()
        assert not [*desk.service.settings.cases.glob("quarantine/*")]


@pytest.mark.parametrize("path", ["original", "bundle.zip"])
@pytest.mark.parametrize("target", ["original", "log", "evidence"])
def test_a_change_on_disk_is_found_before_a_file_leaves(
    open_desk, clip_bytes, path: str, target: str
) -> None:
    with open_desk() as desk:
        desk.drop(("a.mp4", clip_bytes(0)))
        (case,) = desk.wait()
        assert desk.client.get(f"/cases/{case.id}/{path}").status_code == 200
        file = {
            "original": case.original,
            "log": case.folder / "log.jsonl",
            "evidence": case.folder / "evidence" / "result.json",
        }[target]
        data = file.read_bytes()
        changed = data.replace(b"a", b"b", 1)
        assert changed != data
        file.write_bytes(changed)
        reply = desk.client.get(f"/cases/{case.id}/{path}")
        assert (reply.status_code, case.stage) == (409, "damaged")
        assert "The case is damaged: " in reply.text
        assert file.read_bytes() == changed
    file.write_bytes(data)
    with open_desk() as desk:
        (case,) = desk.service.store.select()
        assert case.stage == "damaged"
        (note,) = desk.service.settings.cases.glob("quarantine/*")
        note.unlink()
    with open_desk() as desk:
        (case,) = desk.service.store.select()
        assert desk.client.get(f"/cases/{case.id}/{path}").status_code == 200


def test_a_swapped_original_is_not_reviewed(open_desk, clip_bytes, monkeypatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(CaseReviewWorker, "start", lambda _worker: None)
        with open_desk() as desk:
            case = desk.service.store.add("a.mp4", io.BytesIO(clip_bytes(0)), **FACTS)
    data = bytearray(clip_bytes(0))
    data[-1] ^= 1
    case.original.write_bytes(data)
    with open_desk() as desk:
        until_s = time.monotonic() + 20
        while not desk.service.store.select()[0].is_ended and time.monotonic() < until_s:
            time.sleep(0.05)
        (case,) = desk.service.store.select()
        assert case.damage == "the original file of the case was changed"
        assert not (case.folder / "evidence").exists()


def test_a_case_from_before_the_chain_still_opens_and_goes_on(tmp_path) -> None:
    store = CaseStore(tmp_path)
    case = add_ended_case(store)
    store.close()
    log = case.folder / "log.jsonl"
    log.write_bytes(DAMAGES["without hashes"](log.read_bytes().splitlines(keepends=True)))
    (case.folder / "log.sha256").unlink()
    store = CaseStore(tmp_path)
    (old,) = store.select()
    assert (old.damage, old.n_not_chained) == ("", 3)
    store.record(old, "entry", "berta", text="after", verdict="")
    assert store.check(old)
    store.close()
    (old,) = read_again(tmp_path)
    assert (old.damage, old.n_not_chained) == ("", 3)
    assert [entry.text for entry in old.entries] == ["seen before", "after"]
    log.write_bytes(log.read_bytes().replace(b"finished", b"started"))
    assert read_again(tmp_path)[0].damage == "line 3 or 4 of its log is missing or was changed"


def test_a_full_disk_leaves_no_half_line(tmp_path, monkeypatch) -> None:
    store = CaseStore(tmp_path)
    case = add_ended_case(store)
    write = case_store.os.write
    with monkeypatch.context() as patch:
        patch.setattr(case_store.os, "write", lambda at, data: write(at, data[:9]))
        with pytest.raises(OSError, match="No space left"):
            store.record(case, "entry", "anna", text="lost", verdict="")
    store.record(case, "entry", "anna", text="kept", verdict="")
    assert store.check(case)
    store.close()
    assert [entry.text for entry in read_again(tmp_path)[0].entries] == ["seen before", "kept"]
