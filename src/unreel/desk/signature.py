"""Signatures and timestamps of the manifests of custody bundles, by ssh-keygen and by openssl (RFC 3161)."""

import hashlib
import logging
import re
import subprocess
import tempfile
from pathlib import Path

import httpx2

from unreel.core.errors import InvalidSettingError, InvalidValueError
from unreel.core.output_files import OutputDirectory
from unreel.core.safe_text import sanitise_line
from unreel.core.server_keys import parse_server_url
from unreel.core.settings import build_child_environment
from unreel.network.http_client import open_blocking_http_client, read_blocking_http_body

NAMESPACE = "unreel-desk"
NO_TIMESTAMP = "No timestamp: the time of the manifest is the clock of the desk."
_SECONDS = 20.0
_MAX_REPLY = 64 << 10
_LOG = logging.getLogger(__name__)
_TIME = re.compile(rb"^Time stamp: ([\w :.]+)$", re.MULTILINE)
_KEY = re.compile(r"SHA256:[A-Za-z0-9+/]{43}")


def sign_manifest(data: bytes, key: Path) -> bytes:
    """Return the SSH signature of the manifest `data`, made with the private key in the file `key`.

    Raises:
        InvalidSettingError: ssh-keygen cannot sign with this key.
    """
    command = ("ssh-keygen", "-Y", "sign", "-n", NAMESPACE, "-f", str(key))
    status, signature, reason = _run(*command, data=data)
    if status:
        raise InvalidSettingError(
            "signing_key",
            f"{key} cannot sign ({reason})",
            "Name a private SSH key without a passphrase, or one loaded in ssh-agent",
        )
    return signature


def check_signature(data: bytes, signature: bytes, signers: Path | None) -> str:
    """Check the SSH signature of the manifest `data` and, with `signers`, who signed it."""
    with tempfile.TemporaryDirectory(prefix="unreel-") as folder:
        file = str(OutputDirectory(Path(folder)).write("signature", signature))
        action, identity = ["check-novalidate"], "the identity of the signer was not checked"
        if signers is not None:
            find = ("ssh-keygen", "-Y", "find-principals", "-s", file, "-f", str(signers))
            status, people, _ = _run(*find)
            if status:
                raise InvalidValueError("The signer is not an allowed signer.")
            person = people.decode(errors="replace").splitlines()[0]
            action = ["verify", "-f", str(signers), "-I", person]
            identity = f"signed by {sanitise_line(person)}"
        command = ("ssh-keygen", "-Y", *action, "-n", NAMESPACE, "-s", file)
        status, output, reason = _run(*command, data=data)
    if status:
        raise InvalidValueError(f"The signature does not match the manifest ({reason}).")
    key = _KEY.search(output.decode(errors="replace"))
    return f"The signature is valid (key {key[0] if key else 'unknown'}); {identity}."


def request_timestamp(data: bytes, url: str) -> bytes | None:
    """Return the reply of the timestamp authority at `url` about the manifest `data`; `None` if there is none."""
    digest = hashlib.sha256(data)
    query = ("openssl", "ts", "-query", "-sha256", "-cert", "-digest", digest.hexdigest())
    status, request, problem = _run(*query)
    reply: bytes | None = None
    if not status:
        client = open_blocking_http_client(parse_server_url(url), base_url=url, timeout_s=_SECONDS)
        headers = {"content-type": "application/timestamp-query"}
        try:
            with client, client.stream("POST", url, content=request, headers=headers) as response:
                reply = read_blocking_http_body(response, cap_bytes=_MAX_REPLY)
        except httpx2.HTTPError as error:
            problem = type(error).__name__
    if reply is None or digest.digest() not in reply:
        _LOG.warning("unreel desk: no timestamp from %s (%s)", url, problem)
        return None
    return reply


def check_timestamp(data: bytes, reply: bytes, authorities: Path | None) -> str:
    """Check the timestamp of the manifest `data` and, with `authorities`, who made it.

    Raises:
        InvalidValueError: It is about other data, malformed, or not by one of the authorities.
    """
    digest = hashlib.sha256(data)
    with tempfile.TemporaryDirectory(prefix="unreel-") as folder:
        file = str(OutputDirectory(Path(folder)).write("reply", reply))
        status, text, reason = _run("openssl", "ts", "-reply", "-in", file, "-text")
        by = "authority not checked"
        if not status and authorities is not None:
            trusted = ("-CAfile", str(authorities), "-digest", digest.hexdigest())
            status, _, reason = _run("openssl", "ts", "-verify", "-in", file, *trusted)
            by = "by an accepted authority"
    time = _TIME.search(text)
    if status or time is None or digest.digest() not in reply:
        raise InvalidValueError(f"The timestamp does not match the manifest ({reason}).")
    return f"Timestamp of {time[1].decode()}; {by}."


def _run(program: str, *arguments: str, data: bytes = b"") -> tuple[int, bytes, str]:
    """Run a program without a terminal; the exit status is 1 if it cannot be run or times out."""
    try:
        done = subprocess.run(  # noqa: S603  a program of this machine
            [program, *arguments],
            input=data,
            capture_output=True,
            check=False,
            env=build_child_environment({}, {}, keep=frozenset({"SSH_AUTH_SOCK"})),
            start_new_session=True,
            timeout=_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return 1, b"", str(error)
    reasons = done.stderr.decode(errors="replace").strip().splitlines() or ["no reason"]
    return done.returncode, done.stdout, sanitise_line(reasons[-1])
