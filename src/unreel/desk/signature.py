"""Signatures of the manifests of custody bundles, made and checked by ssh-keygen."""

import re
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from unreel.core.errors import InvalidSettingError, InvalidValueError
from unreel.core.output_files import OutputDirectory
from unreel.core.safe_text import sanitise_line
from unreel.core.settings import build_child_environment

NAMESPACE: Final = "unreel-desk"
_PROGRAM: Final = "ssh-keygen"
_SECONDS: Final = 20.0
_KEY: Final = re.compile(r"SHA256:[A-Za-z0-9+/]{43}")


def sign_manifest(data: bytes, key: Path) -> bytes:
    """Return the SSH signature of the manifest `data`, made with the private key in the file `key`.

    Raises:
        InvalidSettingError: ssh-keygen cannot sign with this key.
    """
    status, signature, reason = _run_ssh_keygen("sign", "-n", NAMESPACE, "-f", str(key), data=data)
    if status:
        remedy = "Name a private SSH key without a passphrase, or one loaded in ssh-agent"
        setting, problem = "signing_key", f"{key} cannot sign ({reason})"
        raise InvalidSettingError(setting, problem, remedy)
    return signature.encode()


def check_signature(data: bytes, signature: bytes, signers: Path | None) -> str:
    """Check the SSH signature of the manifest `data` and, with `signers`, who signed it."""
    with tempfile.TemporaryDirectory(prefix="unreel-") as folder:
        file = str(OutputDirectory(Path(folder)).write("signature", signature))
        action, identity = ["check-novalidate"], "the identity of the signer was not checked"
        if signers is not None:
            status, people, _ = _run_ssh_keygen("find-principals", "-s", file, "-f", str(signers))
            if status:
                msg = "The signer is not an allowed signer."
                raise InvalidValueError(msg)
            person = people.splitlines()[0]
            action = ["verify", "-f", str(signers), "-I", person]
            identity = f"signed by {sanitise_line(person)}"
        status, output, reason = _run_ssh_keygen(*action, "-n", NAMESPACE, "-s", file, data=data)
    if status:
        msg = f"The signature does not match the manifest ({reason})."
        raise InvalidValueError(msg)
    key = _KEY.search(output)
    return f"The signature is valid (key {key[0] if key else 'unknown'}); {identity}."


def _run_ssh_keygen(action: str, *arguments: str, data: bytes = b"") -> tuple[int, str, str]:
    """Run ssh-keygen without a terminal; the exit status is 1 if it cannot be run or times out."""
    try:
        done = subprocess.run(  # noqa: S603  a program of this machine
            [_PROGRAM, "-Y", action, *arguments],
            input=data,
            capture_output=True,
            check=False,
            env=build_child_environment({}, {}, keep=frozenset({"SSH_AUTH_SOCK"})),
            start_new_session=True,
            timeout=_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return 1, "", str(error)
    reasons = done.stderr.decode(errors="replace").strip().splitlines() or ["no reason"]
    return done.returncode, done.stdout.decode(errors="replace"), sanitise_line(reasons[-1])
