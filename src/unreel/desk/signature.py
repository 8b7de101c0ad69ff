"""Signatures of manifests, made and checked by ssh-keygen."""

import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from unreel.core.errors import InvalidSettingError
from unreel.core.output_files import OutputDirectory
from unreel.core.safe_text import sanitise_line
from unreel.core.settings import build_child_environment

NAMESPACE: Final = "unreel-desk"
_PROGRAM: Final = "ssh-keygen"
_SECONDS: Final = 20.0
_KEY: Final = re.compile(r"SHA256:[A-Za-z0-9+/]{43}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SignatureCheck:
    """Result of the check of a signature."""

    is_valid: bool
    text: str


def sign_manifest(data: bytes, key: Path) -> bytes:
    """Return the signature of `data` by the private key in the file `key`.

    Raises:
        InvalidSettingError: ssh-keygen cannot sign with it.
    """
    done = _run("-Y", "sign", "-n", NAMESPACE, "-f", str(key), data=data)
    if done.returncode:
        setting, problem = "signing_key", f"{key} cannot sign ({_read_last_line(done.stderr)})"
        remedy = "Name a private SSH key without a passphrase, or one that ssh-agent holds"
        raise InvalidSettingError(setting, problem, remedy)
    return done.stdout


def check_signature(data: bytes, signature: bytes, signers: Path | None) -> SignatureCheck:
    """Check the signature of `data`, and with a file of allowed signers also the identity of the signer."""
    with tempfile.TemporaryDirectory(prefix="unreel-") as folder:
        file = str(OutputDirectory(Path(folder)).write("signature", signature))
        common = ("-n", NAMESPACE, "-s", file)
        if signers is None:
            done = _run("-Y", "check-novalidate", *common, data=data)
            identity = "the identity of the signer was not checked"
        else:
            found = _run("-Y", "find-principals", "-s", file, "-f", str(signers), data=b"")
            if found.returncode:
                return SignatureCheck(is_valid=False, text="The signer is not an allowed signer.")
            person = found.stdout.decode(errors="replace").splitlines()[0]
            done = _run("-Y", "verify", *common, "-f", str(signers), "-I", person, data=data)
            identity = f"signed by {sanitise_line(person)}"
    if done.returncode:
        text = f"The signature does not fit the manifest ({_read_last_line(done.stderr)})."
        return SignatureCheck(is_valid=False, text=text)
    key = _KEY.search(done.stdout.decode(errors="replace"))
    shown = key[0] if key else "unknown"
    return SignatureCheck(is_valid=True, text=f"The signature is valid (key {shown}); {identity}.")


def _run(*arguments: str, data: bytes) -> subprocess.CompletedProcess[bytes]:
    """Run ssh-keygen without a terminal; a program that does not run has a status above 0."""
    try:
        return subprocess.run(  # noqa: S603  a program of this machine
            [_PROGRAM, *arguments],
            input=data,
            capture_output=True,
            check=False,
            env=build_child_environment({}, {}, keep=frozenset({"SSH_AUTH_SOCK"})),
            start_new_session=True,
            timeout=_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess([_PROGRAM], 1, b"", str(error).encode())


def _read_last_line(text: bytes) -> str:
    return sanitise_line((text.decode(errors="replace").strip().splitlines() or ["no reason"])[-1])
