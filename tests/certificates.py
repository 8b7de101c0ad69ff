"""A certificate for servers of tests."""

import datetime as dt
import ipaddress
from pathlib import Path

import pytest


def write_certificate(folder: Path, host_name: str | None = None) -> Path:
    """A certificate for `host_name`, or for 127.0.0.1, with its key, in one file, signed by itself."""
    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "a server")])
    loopback = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    host = x509.DNSName(host_name) if host_name else loopback
    now = dt.datetime.now(dt.UTC)
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    made = made.not_valid_before(now).not_valid_after(now + dt.timedelta(days=1))
    made = made.add_extension(x509.SubjectAlternativeName([host]), critical=False)
    made = made.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    file = folder / "certificate.pem"
    file.write_bytes(secret + made.sign(key, hashes.SHA256()).public_bytes(pem))
    return file
