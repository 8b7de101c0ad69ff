"""Custody bundles: written, verified, signed, and every changed byte found."""

import io
import json
import random
import subprocess
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from unreel.cli.desk import verify
from unreel.core.errors import UnreadableSourceError
from unreel.desk.case_store import CaseStore
from unreel.desk.custody_bundle import iter_custody_bundle_bytes, verify_custody_bundle
from unreel.desk.signature import sign_manifest


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
    assert checked.signature == "The bundle has no signature."


def test_any_changed_byte_is_found(cases, tmp_path: Path) -> None:
    whole = b"".join(iter_custody_bundle_bytes(cases[:1], None))
    path = tmp_path / "bundle.zip"
    draw = random.Random(0)
    for at in [*draw.sample(range(len(whole)), 300), 0, len(whole) - 1]:
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


def test_the_command_ends_with_a_status(cases, tmp_path: Path) -> None:
    path = tmp_path / "bundle.zip"
    path.write_bytes(b"".join(iter_custody_bundle_bytes(cases, None)))
    done = CliRunner().invoke(verify, [str(path)])
    assert done.exit_code == 0, done.output
    assert f"original {cases[0].clip}  <b>one.mp4" in done.stdout
    path.write_bytes(path.read_bytes()[:-30])
    done = CliRunner().invoke(verify, [str(path), "--json"])
    assert done.exit_code == 1
    assert json.loads(done.stdout)["is_intact"] is False
