"""Cases from the drop to the deletion, in process."""

import io
import json
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np

from chat import refuses, says, serve_chat
from scripted import ANSWERS
from synthesise import ClipRecipe, synthesise
from unreel.core.settings import EnvironmentSettings
from unreel.desk import allowed_folders, app
from unreel.desk.case_store import CaseStore, group_cases_for_triage
from unreel.desk.custody_bundle import verify_custody_bundle
from unreel.desk.keyframes import select_distinct_frames, write_keyframes
from unreel.desk.reviewer_sets import open_reviewer_set
from unreel.desk.settings import ReviewerSet
from unreel.media.access import open_media_reader
from unreel.report.review.review_result import FILE_ONLY_HEADLINE

HOSTILE = "<script>window.hacked=1</script>"


def test_a_batch_becomes_evidence_and_a_bundle(open_desk, model, clip_bytes, tmp_path) -> None:
    chosen, asked = model
    with open_desk(reviewers=(chosen,)) as desk:
        page = desk.drop(("street.mp4", clip_bytes(0)), ("damaged.mp4", clip_bytes(1)[:600]))
        batch = page.url.path
        damaged, street = desk.wait()
        assert (street.stage, damaged.stage) == ("done", "failed")
        page = desk.client.get(f"/cases/{street.id}/").text
        assert "looks AI-generated, from 0.25\u00a0s" in page
        assert "This sends the picture to a third party." in page
        assert "<dd>8, 8 per second</dd>" in page
        assert len(asked) == 2
        for name in ("result.json", "evidence.html", "annotated.mp4", "thumb.jpg", "clip.mp4"):
            assert desk.client.get(f"/cases/{street.id}/{name}").status_code == 200, name
        assert street.keyframes
        for frame in street.keyframes:
            assert desk.client.get(f"/cases/{street.id}/{frame['file']}").status_code == 200
        original = desk.client.get(f"/cases/{street.id}/original")
        assert original.content == clip_bytes(0)
        assert "sandbox" in original.headers["content-security-policy"]
        assert "Not reviewed" in desk.client.get(f"/cases/{damaged.id}/").text
        listed = desk.client.get(batch).text
        assert "2 of 2 clips are ready" in listed
        assert listed.index("A verdict is missing") < listed.index("Looks AI-generated")
        path = tmp_path / "bundle.zip"
        path.write_bytes(desk.client.get(f"{batch}bundle.zip").content)
        checked = verify_custody_bundle(path)
        assert checked.is_intact, checked.problems
        assert {each.sha256 for each in checked.originals} == {street.clip, damaged.clip}


def test_people_note_and_decide_and_their_text_stays_text(open_desk, clip_bytes) -> None:
    with open_desk() as desk:
        desk.drop((f"{HOSTILE}.mp4", clip_bytes(0)))
        (case,) = desk.wait()
        assert case.sentence == FILE_ONLY_HEADLINE
        page = desk.client.get(f"/cases/{case.id}/").text
        headings = re.findall(r"<h[23][^>]*>([^<]+)<", page)
        assert "Findings in the file itself" in headings
        assert not {"Verdicts", "Reasons", "Requests and answers"} & {*headings}
        assert "annotated" not in page
        assert not (case.folder / "evidence" / "annotated.mp4").exists()
        form = {"form_token": desk.token, "text": f"{HOSTILE}\r\nmore", "verdict": "not-known"}
        page = desk.client.post(f"/cases/{case.id}/entries", data=form).text
        assert "verdict <strong>not known</strong>" in page
        assert HOSTILE not in page + desk.client.get("/").text
        assert "&lt;script&gt;window.hacked=1&lt;/script&gt;\nmore" in page
        empty = form | {"text": " ", "verdict": "certain"}
        assert desk.client.post(f"/cases/{case.id}/entries", data=empty).status_code == 422
        found = {
            "/?verdict=not-known": True,
            "/?verdict=none": False,
            "/?text=script": True,
            f"/?text={case.clip[:10]}": True,
            "/?text=elsewhere": False,
            "/?since=2000-01-01&until=2000-01-02": False,
            f"/?person={case.person}": True,
            "/?person=other": False,
        }
        for path, is_listed in found.items():
            assert (f"/cases/{case.id}/" in desk.client.get(path).text) is is_listed, path
        log = (case.folder / "log.jsonl").read_text()
        desk.client.post(f"/cases/{case.id}/delete", data={"form_token": desk.token})
        assert desk.client.get(f"/cases/{case.id}/").status_code == 404
        assert not case.folder.exists()
    events = [json.loads(line)["event"] for line in log.splitlines()]
    assert events == ["added", "started", "evidence", "keyframes", "finished", "entry"]


def test_missing_answers_are_asked_again_and_no_others(open_desk, clip_bytes) -> None:
    asked: list[str] = []

    def reply(body: bytes, _headers: object) -> object:
        name = "trace" if b"coordinates" in body else "realism"
        asked.append(name)
        is_down = name == "realism" and asked.count(name) == 1
        return refuses(400, HOSTILE) if is_down else says(ANSWERS[name])

    with serve_chat(reply) as port:
        chosen = ReviewerSet(name="One", models=(f"vllm/qwen3-vl@http://127.0.0.1:{port}/v1",))
        with open_desk(reviewers=(chosen,)) as desk:
            desk.drop(("a.mp4", clip_bytes(0)))
            (case,) = desk.wait()
            assert case.attention == "failure"
            page = desk.client.get(f"/cases/{case.id}/").text
            assert "Ask for the missing answers again" in page
            assert HOSTILE not in page
            desk.client.post(f"/cases/{case.id}/again", data={"form_token": desk.token})
            desk.wait()
            assert (case.stage, case.attention) == ("done", "generated")
    assert sorted(asked) == ["realism", "realism", "trace"]


def test_progress_comes_as_events_until_the_end(open_desk, clip_bytes) -> None:
    with open_desk() as desk:
        desk.drop(("a.mp4", clip_bytes(0)))
        (case,) = desk.service.store.select()
        with desk.client.stream("GET", f"/events?case={case.id}") as reply:
            assert reply.headers["content-type"].startswith("text/event-stream")
            text = "".join(reply.iter_text())
        rows = [
            json.loads(line[6:])[0] for line in text.splitlines() if line.startswith("data: [{")
        ]
        assert rows[-1]["stage"] == "done"
        assert rows[-1]["sentence"] == FILE_ONLY_HEADLINE
        assert text.endswith("event: end\ndata: \n\n")
        facts = {"reviewers": "x", "person": "p", "batch": ""}
        waiting = [desk.service.store.add("b.mp4", io.BytesIO(b"x"), **facts) for _ in range(2)]
        worker = desk.service.worker
        worker._waiting.update({each.id: worker._n_taken + n for n, each in enumerate(waiting)})
        assert "Waiting: 1 case before it, about" in worker.describe(waiting[1])


def test_progress_names_the_listed_cases_only(open_desk, clip_bytes, monkeypatch) -> None:
    monkeypatch.setattr(app, "MAX_LISTED", 1)
    with open_desk() as desk:
        desk.drop(("a.mp4", clip_bytes(0)), ("b.mp4", clip_bytes(0)))
        newest, _older = desk.wait()
        with desk.client.stream("GET", "/events") as reply:
            text = "".join(reply.iter_text())
        assert [row["id"] for row in json.loads(text.split("\n")[0][6:])] == [newest.id]


def test_a_folder_of_the_server_becomes_a_batch(open_desk, clip_bytes, tmp_path) -> None:
    folder = tmp_path / "in" / "day"
    folder.mkdir(parents=True)
    (folder / "a.mp4").write_bytes(clip_bytes(0))
    (folder / "link.mp4").symlink_to(folder / "a.mp4")
    (folder / "notes.txt").write_text("x")
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "b.mp4").write_bytes(clip_bytes(0))
    (tmp_path / "in" / "linked").symlink_to(tmp_path / "private")
    with open_desk(roots=(tmp_path / "in",)) as desk:
        page = desk.client.get("/").text
        assert f"<option>{folder}</option>" in page
        assert "linked" not in page
        assert desk.drop(folder=str(tmp_path / "in" / "linked")).status_code == 422
        page = desk.drop(folder=str(folder))
        assert page.url.path.startswith("/batches/")
        assert [case.name for case in desk.service.store.select()] == ["a.mp4"]


def test_folders_are_searched_once_for_many_views(tmp_path: Path, monkeypatch) -> None:
    searched: list[Path] = []
    monkeypatch.setattr(
        allowed_folders, "walk_videos", lambda root: [searched.append(root), "day/a.mp4"]
    )
    monkeypatch.setattr(allowed_folders, "_REUSED_S", 1e12)
    lists = [allowed_folders.list_clip_folders([tmp_path]) for _ in range(20)]
    assert lists == [[str(tmp_path / "day")]] * 20
    assert searched == [tmp_path]


def test_a_cut_off_log_line_is_ignored_and_an_unfinished_upload_removed(
    tmp_path, clip_bytes
) -> None:
    store = CaseStore(tmp_path)
    source = tmp_path / "a.mp4"
    source.write_bytes(clip_bytes(0))
    with source.open("rb") as file:
        case = store.add("a.mp4", file, reviewers="x", person="p", batch="")
    store.record(case, "entry", "p", text="kept", verdict="")
    store.close()
    with (case.folder / "log.jsonl").open("a") as log:
        log.write('{"at": "2026-11-18T10:00:00+00:00", "event": "ent')
    unfinished = case.folder.with_name("0123456789abcdef")
    (unfinished / "original").mkdir(parents=True)
    foreign = case.folder.with_name("notes")
    foreign.mkdir()
    store = CaseStore(tmp_path)
    (again,) = store.select()
    store.record(again, "entry", "p", text="after", verdict="real")
    store.close()
    (last,) = CaseStore(tmp_path).select()
    assert [entry.text for entry in last.entries] == ["kept", "after"]
    assert not unfinished.exists()
    assert foreign.exists()


def test_triage_follows_the_index_page(open_desk, clip_bytes) -> None:
    with open_desk() as desk:
        desk.drop(("a.mp4", clip_bytes(0)))
        (case,) = desk.wait()
    kinds = ["none", "generated", None, "failure", "disagreement"]
    cases = [replace(case, id=str(kind), attention=kind) for kind in kinds]
    assert [title for title, _ in group_cases_for_triage(cases)] == [
        "In progress",
        "Verdicts disagree",
        "A verdict is missing",
        "Looks AI-generated",
        "The rest",
    ]


def test_the_cost_of_a_clip_is_stated_or_not_known(tmp_path: Path) -> None:
    prices, model = tmp_path / "prices.toml", "vllm/qwen3-vl@http://127.0.0.1:1/v1"
    amounts = "input_usd_per_million = 1.25\noutput_usd_per_million = 10\n"
    prices.write_text(f'[models."vllm/qwen3-vl"]\n{amounts}')
    priced = ReviewerSet(name="a", models=(model,), prices=prices)
    cost = open_reviewer_set(priced, EnvironmentSettings()).cost
    assert re.fullmatch(r"Cost per clip: at most 0\.0\d+ USD for 10 s at 1280 \u00d7 720\.", cost)
    unknown = ReviewerSet(name="a", models=(model,))
    assert open_reviewer_set(unknown, EnvironmentSettings()).cost == "Cost per clip: not known."
    free = ReviewerSet(name="a", models=("coin",))
    assert "no service is paid" in open_reviewer_set(free, EnvironmentSettings()).cost


def test_keyframes_begin_shots_and_differ(tmp_path: Path) -> None:
    histograms = np.zeros((30, 512), np.uint8)
    for frame in range(30):
        histograms[frame, frame // 10] = 255
    assert select_distinct_frames(histograms, [0, 10, 20]) == [0, 10, 20]
    assert select_distinct_frames(histograms, [0]) == [0, 10, 20]
    file = tmp_path / "a.mp4"
    file.write_bytes(synthesise(ClipRecipe(n_frames=8, rate=Fraction(8))))
    with open_media_reader(EnvironmentSettings(), trusted=True) as reader:
        first = write_keyframes(file, tmp_path, reader=reader)[0]
        assert (first["index"], first["at"], first["is_cut"]) == (0, "0.00 s", True)
        assert (tmp_path / first["file"]).is_file()
        file.write_bytes(b"no clip")
        assert write_keyframes(file, tmp_path, reader=reader) == []
        assert not (tmp_path / "keyframes").exists()
