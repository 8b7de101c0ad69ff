"""What a file says of its own origin, and how far that can be believed."""

from pathlib import Path

import pytest

from credentials import sign, sign_with_root
from synthesise import ClipRecipe, synthesise
from unreel.core.errors import InvalidSettingError
from unreel.report.review.provenance import (
    C2paManifest,
    C2paManifestState,
    read_c2pa_manifest,
    read_trust_list,
)

c2pa = pytest.importorskip("c2pa", reason="c2pa-python is not installed: unreel[provenance]")


@pytest.fixture(scope="module")
def signed(tmp_path_factory) -> Path:
    """A clip with a manifest under a certificate that nobody trusts."""
    path = tmp_path_factory.mktemp("signed") / "signed.mp4"
    path.write_bytes(sign(synthesise(ClipRecipe(n_frames=12))))
    return path


def test_a_signature_that_holds_is_told_with_its_doubt(signed) -> None:
    found = read_c2pa_manifest(signed)
    assert found.state is C2paManifestState.VALID
    assert "signed as test signer" in found.says
    assert "No trust list is in use" in found.says
    assert found.manifest.actions == ("c2pa.created (trainedAlgorithmicMedia) by Some generator",)
    assert found.manifest.title == "<b>a clip</b>"


def test_a_signer_under_a_trusted_authority_is_shown_as_trusted(tmp_path) -> None:
    film, root = sign_with_root(synthesise(ClipRecipe(n_frames=12)))
    other = sign_with_root(synthesise(ClipRecipe(n_frames=12)))[1]
    path, anchors = tmp_path / "signed.mp4", tmp_path / "anchors.pem"
    path.write_bytes(film)
    anchors.write_bytes(root)
    found = read_c2pa_manifest(path, trust_list=read_trust_list(anchors))
    assert found.state is C2paManifestState.TRUSTED
    assert "is on the trust list anchors.pem of 20" in found.says
    anchors.write_bytes(other)
    found = read_c2pa_manifest(path, trust_list=read_trust_list(anchors))
    assert found.state is C2paManifestState.VALID
    assert "is not on the trust list" in found.says
    anchors.write_bytes(b"no certificate")
    with pytest.raises(InvalidSettingError, match="no certificate in PEM"):
        read_trust_list(anchors)


def test_a_changed_picture_breaks_the_signature(signed, tmp_path) -> None:
    data = bytearray(signed.read_bytes())
    data[-2000] ^= 0xFF
    changed = tmp_path / "changed.mp4"
    changed.write_bytes(data)
    found = read_c2pa_manifest(changed)
    assert found.state is C2paManifestState.INVALID
    assert "are not valid (assertion.bmffHash.mismatch)" in found.says


def test_a_file_without_a_manifest_proves_nothing(tmp_path) -> None:
    path = tmp_path / "plain.mp4"
    path.write_bytes(synthesise(ClipRecipe(n_frames=4)))
    found = read_c2pa_manifest(path)
    assert found.state is C2paManifestState.ABSENT
    assert "proves nothing" in found.says
    assert found.manifest is None


@pytest.mark.parametrize("size", [0, 40, 2500])
def test_a_broken_file_is_a_state_and_no_crash(signed, tmp_path, size) -> None:
    path = tmp_path / "broken.mp4"
    path.write_bytes(signed.read_bytes()[:size])
    doubtful = {
        C2paManifestState.UNREADABLE,
        C2paManifestState.ABSENT,
        C2paManifestState.NOT_SEARCHED,
    }
    assert read_c2pa_manifest(path).state in doubtful


@pytest.mark.parametrize("container", ["webm", "ts"])
def test_a_form_that_the_library_does_not_read_is_said_plainly(tmp_path, container) -> None:
    path = tmp_path / "clip.mp4"
    path.write_bytes(synthesise(ClipRecipe(container=container, n_frames=4)))
    found = read_c2pa_manifest(path)
    assert found.state is C2paManifestState.NOT_SEARCHED
    assert "does not read this kind" in found.says
    assert read_c2pa_manifest(tmp_path / "nowhere").state is C2paManifestState.NOT_SEARCHED


def test_a_manifest_longer_than_it_may_be_is_refused() -> None:
    with pytest.raises(ValueError, match="at most 300"):
        C2paManifest(found="manifest", title="x" * 301)
