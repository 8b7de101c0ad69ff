"""Custody bundles: written, verified, signed, and every changed byte found."""

import hashlib
import io
import json
import random
import subprocess
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner

from desk.timestamp_authority import serve_timestamps
from unreel.cli.desk import verify
from unreel.core.errors import InvalidValueError, UnreadableSourceError
from unreel.desk import custody_bundle
from unreel.desk.case_store import CaseStore
from unreel.desk.custody_bundle import iter_custody_bundle_bytes, verify_custody_bundle
from unreel.desk.signature import request_timestamp, sign_manifest


@pytest.fixture
def cases(tmp_path: Path):
    """Two ended cases with small files in the place of evidence."""
    store = CaseStore(tmp_path / "desk")
    made = []
    for name in ("<b>one.mp4", "two.mp4"):
        case = store.add(name, io.BytesIO(name.encode()), reviewers="a", person="anna", batch="b")
        (case.folder / "evidence" / "stills").mkdir(parents=True)
        (case.folder / "evidence" / "evidence.html").write_text(f"<p>{case.id}</p>")
        (case.folder / "evidence" / "stills" / "01.png").write_bytes(bytes(range(256)) * 9)
        store.record(case, "entry", "berta", text="seen before", verdict="not-known")
        store.record(case, "finished")
        made.append(case)
    yield made
    store.close()


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """A fresh SSH key of a person named desk."""
    path = tmp_path / "key"
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "desk", "-f", str(path)]
    subprocess.run(command, check=True)
    public = path.with_suffix(".pub").read_text()
    (tmp_path / "signers").write_text(f"desk@example.org {public}")
    return path


def test_a_bundle_lists_its_files_and_the_original(cases, tmp_path: Path) -> None:
    path = tmp_path / "bundle.zip"
    path.write_bytes(b"".join(iter_custody_bundle_bytes(cases, None)))
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        manifest = json.loads(archive.read("manifest.json"))
        (facts,) = [json.loads(archive.read(n)) for n in names if n.endswith("two/case.json")]
    assert [case["sha256"] for case in manifest["cases"]] == [case.clip for case in cases]
    assert {*manifest["files"]} == {*names} - {"manifest.json"}
    assert any(name.endswith("/log.jsonl") for name in names)
    assert facts["entries"][0] | {"at": ""} == {
        "person": "berta",
        "at": "",
        "text": "seen before",
        "verdict": "not-known",
    }
    checked = verify_custody_bundle(path)
    assert (checked.is_intact, checked.problems) == (True, ())
    assert checked.signature == "Unsigned: proves nothing about who made it."


def test_any_changed_byte_is_found(cases, tmp_path: Path) -> None:
    whole = b"".join(iter_custody_bundle_bytes(cases[:1], None))
    path = tmp_path / "bundle.zip"
    draw = random.Random(0)
    for at in [*draw.sample(range(len(whole)), 600), 0, len(whole) - 1]:
        changed = bytearray(whole)
        changed[at] ^= 1 << draw.randrange(8)
        path.write_bytes(changed)
        assert not verify_custody_bundle(path).is_intact, at
    for changed in (whole + b"x", whole[:-1], whole[:100], b""):
        path.write_bytes(changed)
        assert not verify_custody_bundle(path).is_intact


def test_added_missing_and_foreign_files_are_named(cases, tmp_path: Path) -> None:
    path = tmp_path / "bundle.zip"
    path.write_bytes(b"".join(iter_custody_bundle_bytes(cases[:1], None)))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("evidence/more.png", b"x")
    assert verify_custody_bundle(path).problems == ("evidence/more.png is not in the manifest.",)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("manifest.json", '{"form": "other"}')
    assert "not an intact bundle" in verify_custody_bundle(path).problems[0]
    with pytest.raises(UnreadableSourceError):
        verify_custody_bundle(tmp_path / "gone.zip")


def test_a_signature_names_its_signer(cases, key: Path, tmp_path: Path) -> None:
    path, signers = tmp_path / "bundle.zip", tmp_path / "signers"
    path.write_bytes(
        b"".join(iter_custody_bundle_bytes(cases, lambda data: sign_manifest(data, key)))
    )
    assert "identity of the signer was not checked" in verify_custody_bundle(path).signature
    assert "signed by desk@example.org" in verify_custody_bundle(path, signers).signature
    signers.write_text("other@example.org ssh-ed25519 " + "A" * 68 + "\n")
    refused = verify_custody_bundle(path, signers)
    assert refused.problems == ("The signer is not an allowed signer.",)
    path.write_bytes(
        b"".join(iter_custody_bundle_bytes(cases, lambda _data: sign_manifest(b"other", key)))
    )
    (problem,) = verify_custody_bundle(path).problems
    assert problem.startswith("The signature does not match the manifest")
    path.write_bytes(b"".join(iter_custody_bundle_bytes(cases, None)))
    assert not verify_custody_bundle(path, signers).is_intact


def test_the_command_ends_with_a_status(cases, key: Path, tmp_path: Path) -> None:
    path = tmp_path / "bundle.zip"
    path.write_bytes(b"".join(iter_custody_bundle_bytes(cases, None)))
    done = CliRunner().invoke(verify, [str(path)])
    assert done.exit_code == 3, done.output
    assert "Unsigned: proves nothing about who made it." in done.stdout
    assert f"original {cases[0].clip}  <b>one.mp4" in done.stdout
    for original, status in ((cases[1].original, 3), (key, 1)):
        done = CliRunner().invoke(verify, [str(path), "--original", str(original)])
        assert done.exit_code == status, done.output
        assert ("is not an original" in done.output) is (status == 1)
    signed = iter_custody_bundle_bytes(cases, lambda data: sign_manifest(data, key))
    path.write_bytes(b"".join(signed))
    assert CliRunner().invoke(verify, [str(path)]).exit_code == 0
    path.write_bytes(path.read_bytes()[:-30])
    done = CliRunner().invoke(verify, [str(path), "--json"])
    assert done.exit_code == 1
    assert json.loads(done.stdout)["is_intact"] is False


def test_a_timestamp_is_requested_and_checked(open_desk, clip_bytes, tmp_path: Path) -> None:
    path = tmp_path / "bundle.zip"
    with (
        serve_timestamps(tmp_path / "a") as (url, certificate),
        serve_timestamps(tmp_path / "b") as (_url, other),
        open_desk(timestamp_url=url) as desk,
    ):
        desk.drop(("a.mp4", clip_bytes(0)))
        (case,) = desk.wait()
        path.write_bytes(desk.client.get(f"/cases/{case.id}/bundle.zip").content)
    year = str(datetime.now(UTC).year)
    for options, status, text in (
        ([], 3, f"{year} GMT; authority not checked."),
        (["--authorities", str(certificate)], 3, f"{year} GMT; by an accepted authority."),
        (["--authorities", str(other)], 1, "The timestamp does not match the manifest"),
    ):
        done = CliRunner().invoke(verify, [str(path), *options])
        assert done.exit_code == status, done.output
        assert text in done.output
    forge(path, {"manifest.json": swap('"made_by"', ' "made_by"')})
    (problem,) = verify_custody_bundle(path).problems
    assert problem.startswith("The timestamp does not match the manifest")


def test_a_bundle_without_a_timestamp_says_so(cases, tmp_path: Path, caplog) -> None:
    path, authorities = tmp_path / "bundle.zip", tmp_path / "authorities.pem"
    authorities.write_text("")
    stamp = partial(request_timestamp, url="http://127.0.0.1:9/tsr")
    path.write_bytes(b"".join(iter_custody_bundle_bytes(cases, None, stamp)))
    assert "no timestamp from http://127.0.0.1:9/tsr (ConnectError)" in caplog.text
    checked = verify_custody_bundle(path)
    assert (checked.is_intact, checked.timestamp[:12]) == (True, "No timestamp")
    problems = verify_custody_bundle(path, authorities=authorities).problems
    assert problems == (checked.timestamp,)


def forge(path: Path, changes: dict[str, Callable[[bytes], bytes]]) -> None:
    """Write the bundle again with changed files, and with a manifest that lists their new hashes."""
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(entries.pop("manifest.json"))
    for name, change in changes.items():
        if name != "manifest.json":
            entries[name] = change(entries[name])
            manifest["files"][name] = hashlib.sha256(entries[name]).hexdigest()
    data = json.dumps(manifest).encode()
    entries["manifest.json"] = changes.get("manifest.json", bytes)(data)
    files = ((name, len(data), partial(io.BytesIO, data)) for name, data in entries.items())
    path.write_bytes(b"".join(custody_bundle._iter_zip_bytes(files, {})))


def swap(old: str, new: str) -> Callable[[bytes], bytes]:
    """Return a function that replaces a text that must be there."""

    def change(data: bytes) -> bytes:
        assert old.encode() in data
        return data.replace(old.encode(), new.encode())

    return change


FORGERIES = [
    {"case.json": swap("berta", "otto")},
    {"case.json": swap("not-known", "real")},
    {"case.json": swap("one.mp4", "two.mp4")},
    {"log.jsonl": swap("berta", "otto")},
    {"log.jsonl": swap("not-known", "real"), "case.json": swap("not-known", "real")},
    {"evidence/result.json": swap('"none"', '"generated"')},
    {"evidence/result.json": swap("0.25", "0.75")},
    {"evidence/result.json": swap("CLIP", "0" * 64)},
    {"manifest.json": swap("CLIP", "0" * 64)},
    {"manifest.json": swap("one.mp4", "two.mp4")},
]


@pytest.mark.parametrize("forgery", FORGERIES, ids="+".join)
def test_a_forged_bundle_contradicts_itself(tmp_path: Path, forgery) -> None:
    store = CaseStore(tmp_path / "desk")
    case = store.add("one.mp4", io.BytesIO(b"x"), reviewers="a", person="anna", batch="")
    result = {"clip": case.clip, "attention": "none", "score": "0.25"}
    (case.folder / "evidence").mkdir()
    (case.folder / "evidence" / "result.json").write_text(json.dumps(result))
    store.record(case, "evidence", attention="none", sentence="", claims=[])
    store.record(case, "finished", files=store.hash_review_files(case))
    store.record(case, "entry", "berta", text="", verdict="not-known")
    path = tmp_path / "bundle.zip"
    path.write_bytes(b"".join(iter_custody_bundle_bytes([case], None)))
    store.close()
    forge(path, {})
    assert verify_custody_bundle(path).problems == ()
    changes = {}
    for name, change in forgery.items():
        changes[name] = lambda data, change=change: change(
            data.replace(case.clip.encode(), b"CLIP")
        ).replace(b"CLIP", case.clip.encode())
    forge(path, changes)
    assert not verify_custody_bundle(path).is_intact


def test_evidence_that_changes_while_it_is_read_gets_no_manifest(tmp_path: Path) -> None:
    store = CaseStore(tmp_path / "desk")
    case = store.add("one.mp4", io.BytesIO(b"x"), reviewers="a", person="anna", batch="")
    (case.folder / "evidence").mkdir()
    (case.folder / "evidence" / "result.json").write_text("{}")
    store.record(case, "finished", files=store.hash_review_files(case))
    store.close()
    (case.folder / "evidence" / "result.json").write_text("[]")
    with pytest.raises(InvalidValueError, match="was changed after the review"):
        b"".join(iter_custody_bundle_bytes([case], None))


def test_a_bundle_says_which_lines_are_not_chained(cases, tmp_path: Path) -> None:
    log = cases[0].folder / "log.jsonl"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        del line["before"]
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    cases[0].n_not_chained = 3
    path = tmp_path / "bundle.zip"
    path.write_bytes(b"".join(iter_custody_bundle_bytes(cases[:1], None)))
    checked = verify_custody_bundle(path)
    assert (checked.problems, checked.originals[0].n_not_chained) == ((), 3)
    done = CliRunner().invoke(verify, [str(path)])
    assert "(not chained: the first 3 lines of its log)" in done.stdout
