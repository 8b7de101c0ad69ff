"""Content Credentials for tests: a clip signed under a certificate that nobody trusts."""

import datetime as dt
import io

import pytest

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


def sign(film: bytes, *, signer: str = "test signer") -> bytes:
    """`film` with a manifest that names `signer`."""
    return sign_with_root(film, signer=signer)[0]


def sign_with_root(film: bytes, *, signer: str = "test signer") -> tuple[bytes, bytes]:
    """`film` with a manifest that names `signer`, and the certificate of the authority in PEM."""
    c2pa = pytest.importorskip("c2pa", reason="c2pa-python is not installed: unreel[provenance]")
    chain, key = _certificate(signer)
    info = c2pa.C2paSignerInfo(alg=b"es256", sign_cert=chain, private_key=key, ta_url=b"")
    info.ta_url = None  # no time stamp: that would ask the network
    out = io.BytesIO()
    with c2pa.Signer.from_info(info) as signing, c2pa.Builder(CLAIM) as builder:
        builder.sign(signing, "video/mp4", io.BytesIO(film), out)
    root = chain[chain.rindex(b"-----BEGIN CERTIFICATE-----") :]
    return out.getvalue(), root


def _certificate(name: str) -> tuple[bytes, bytes]:
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

    chain = [build(name, leaf_key, leaf=True), build("test root", root_key, leaf=False)]
    pem = serialization.Encoding.PEM
    key = leaf_key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return b"".join(one.public_bytes(pem) for one in chain), key
