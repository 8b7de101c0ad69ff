"""Compares the scripts of others in the report with their originals on npm.

The table in the folder's README names package, version and file; CHANGES says what was changed.
"""

import hashlib
import io
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "src/unreel/report/boards/static/vendor"
ROW = re.compile(
    r"\| `(?P<file>[^`]+)` \| npm `(?P<package>[^`]+)` (?P<version>\S+), `(?P<path>[^`]+)`.*`(?P<sha>[0-9a-f]{64})` \|"
)
# Each original text must occur exactly once.
CHANGES = {
    "vega-lite.min.js": [("\n//# sourceMappingURL=vega-lite.min.js.map", "")],
    "vega-interpreter.js": [
        (
            "import { ascending, isString, DisallowedObjectProperties } from 'vega-util';",
            "(function (vega) {\nconst { ascending, isString, DisallowedObjectProperties } = vega;",
        ),
        (
            "export { expression as expressionInterpreter };\n//# sourceMappingURL=vega-interpreter.js.map",
            "vega.expressionInterpreter = expression;\n})(globalThis.vega);",
        ),
    ],
}


def main() -> int:
    """Print one line for each script; fail on the first difference."""
    rows = [*ROW.finditer((FOLDER / "README.md").read_text())]
    listed = {row["file"] for row in rows}
    if listed != {path.name for path in FOLDER.glob("*.js")}:
        sys.exit(f"the table of {FOLDER.name}/README.md and the scripts beside it differ")
    for row in rows:
        archive = fetch(row["package"], row["version"])
        if archive is None:
            print(
                f"VENDORED SCRIPTS NOT COMPARED: npm cannot fetch {row['package']} {row['version']} from here"
            )
            return 0
        kept = (FOLDER / row["file"]).read_bytes()
        licence = (FOLDER / f"LICENSE.{row['package']}.txt").read_bytes()
        same = kept == change(take(archive, row["path"]), row["file"]) and licence == take(
            archive, "LICENSE"
        )
        if not same or hashlib.sha256(kept).hexdigest() != row["sha"]:
            sys.exit(f"{row['file']} is not what npm has in {row['package']} {row['version']}")
        print(
            f"{row['file']}: as in npm's {row['package']} {row['version']}, {len(CHANGES.get(row['file'], []))} known changes"
        )
    return 0


def fetch(package: str, version: str) -> bytes | None:
    """The archive of one version; npm checks it against the registry's own hash."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            "npm",
            "pack",
            f"{package}@{version}",
            "--silent",
            "--ignore-scripts",
            "--pack-destination",
            folder,
        ]
        try:
            done = subprocess.run(command, check=False, cwd=folder, capture_output=True, timeout=60)
        except (OSError, subprocess.TimeoutExpired):
            return None
        found = [*Path(folder).glob("*.tgz")]
        return found[0].read_bytes() if done.returncode == 0 and found else None


def take(archive: bytes, path: str) -> bytes:
    """One file of the archive."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        file = opened.extractfile(f"package/{path}")
        return file.read() if file else b""


def change(original: bytes, file: str) -> bytes:
    """The original with the changes that we make."""
    text = original.decode()
    for before, after in CHANGES.get(file, []):
        if text.count(before) != 1:
            sys.exit(f"{file}: {before[:60]!r} is not in the original once")
        text = text.replace(before, after)
    return text.encode()


if __name__ == "__main__":
    sys.exit(main())
