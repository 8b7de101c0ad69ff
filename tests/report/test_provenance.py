"""What a file says of its own origin, and how far that can be believed."""

import datetime as dt
import io
from pathlib import Path

import pytest

from unreel.media.synthesise import ClipRecipe, synthesise
from unreel.report.provenance import Manifest, ManifestState, read_provenance

c2pa = pytest.importorskip("c2pa", reason="c2pa-python is not installed: unreel[provenance]")

GENERATED = "http://cv.iptc.org/newscodes/digitalsourcetype/trainedAlgorithmicMedia"
CLAIM = {
    "claim_generator_info": [{"name": "unreel-tests", "version": "1"}],
    "title": "<b>a clip</b>",
    "assertions": [
        {
            "label": "c2pa.actions.v2",
            "data": {
                "actions": [
                    {
                        "action": "c2pa.created",
                        "digitalSourceType": GENERATED,
                        "softwareAgent": {"name": "Some generator"},
                    }
                ]
            },
        }
    ],
}


@pytest.fixture(scope="module")
def signed(tmp_path_factory) -> Path:
    """A clip with a manifest under a certificate that nobody trusts."""
    chain, key = certificate()
    info = c2pa.C2paSignerInfo(alg=b"es256", sign_cert=chain, private_key=key, ta_url=b"")
    info.ta_url = None  # no time stamp: that would ask the network
    out = io.BytesIO()
    clip = io.BytesIO(synthesise(ClipRecipe(n_frames=12)))
    with c2pa.Signer.from_info(info) as signer, c2pa.Builder(CLAIM) as builder:
        builder.sign(signer, "video/mp4", clip, out)
    path = tmp_path_factory.mktemp("signed") / "signed.mp4"
    path.write_bytes(out.getvalue())
    return path


def certificate() -> tuple[bytes, bytes]:
    """A signer's chain and key, made for this test."""
    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    root_key, leaf_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    start = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)

    def build(name: str, key, *, leaf: bool):
        subject, issuer = (
            x509.Name(
                [
                    x509.NameAttribute(NameOID.ORGANIZATION_NAME, "unreel tests"),
                    x509.NameAttribute(NameOID.COMMON_NAME, common),
                ]
            )
            for common in (name, "test root")
        )
        usage = {
            "digital_signature": leaf,
            "key_cert_sign": not leaf,
            "crl_sign": not leaf,
            **dict.fromkeys(("content_commitment", "key_encipherment", "data_encipherment"), False),
            **dict.fromkeys(("key_agreement", "encipher_only", "decipher_only"), False),
        }
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(key.public_key())
            .serial_number(2 if leaf else 1)
            .not_valid_before(start)
            .not_valid_after(start + dt.timedelta(days=36_500))
            .add_extension(x509.BasicConstraints(ca=not leaf, path_length=None), critical=True)
            .add_extension(x509.KeyUsage(**usage), critical=True)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
            )
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(root_key.public_key()),
                critical=False,
            )
        )
        if leaf:
            purposes = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.EMAIL_PROTECTION])
            builder = builder.add_extension(purposes, critical=False)
        return builder.sign(root_key, hashes.SHA256())

    chain = [build("test signer", leaf_key, leaf=True), build("test root", root_key, leaf=False)]
    pem = serialization.Encoding.PEM
    key = leaf_key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return b"".join(one.public_bytes(pem) for one in chain), key


def test_a_signature_that_holds_is_told_with_its_doubt(signed) -> None:
    found = read_provenance(signed)
    assert found.state is ManifestState.VALID
    assert "signed as test signer" in found.says
    assert "No trust list is in use" in found.says
    assert found.manifest.actions == ("c2pa.created (trainedAlgorithmicMedia) by Some generator",)
    assert found.manifest.title == "<b>a clip</b>"


def test_a_changed_picture_breaks_the_signature(signed, tmp_path) -> None:
    data = bytearray(signed.read_bytes())
    data[-2000] ^= 0xFF
    changed = tmp_path / "changed.mp4"
    changed.write_bytes(data)
    found = read_provenance(changed)
    assert found.state is ManifestState.INVALID
    assert "do not hold (assertion.bmffHash.mismatch)" in found.says


def test_a_file_without_a_manifest_proves_nothing(tmp_path) -> None:
    path = tmp_path / "plain.mp4"
    path.write_bytes(synthesise(ClipRecipe(n_frames=4)))
    found = read_provenance(path)
    assert found.state is ManifestState.ABSENT
    assert "proves nothing" in found.says
    assert found.manifest is None


@pytest.mark.parametrize("size", [0, 40, 2500])
def test_a_broken_file_is_a_state_and_no_crash(signed, tmp_path, size) -> None:
    path = tmp_path / "broken.mp4"
    path.write_bytes(signed.read_bytes()[:size])
    doubtful = {ManifestState.UNREADABLE, ManifestState.ABSENT, ManifestState.NOT_LOOKED_FOR}
    assert read_provenance(path).state in doubtful


@pytest.mark.parametrize("container", ["webm", "ts"])
def test_a_form_that_the_library_does_not_read_is_said_plainly(tmp_path, container) -> None:
    path = tmp_path / "clip.mp4"
    path.write_bytes(synthesise(ClipRecipe(container=container, n_frames=4)))
    found = read_provenance(path)
    assert found.state is ManifestState.NOT_LOOKED_FOR
    assert "does not read this kind" in found.says
    assert read_provenance(tmp_path / "nowhere").state is ManifestState.NOT_LOOKED_FOR


def test_a_manifest_longer_than_it_may_be_is_refused() -> None:
    with pytest.raises(ValueError, match="at most 300"):
        Manifest(found="manifest", title="x" * 301)
