"""Asks for known vulnerabilities of all pinned packages. Run it where pip-audit is installed.

A vulnerability fails unless .ci/advisories.toml lists it. Packages that no source could tell about are
named: silence of a source is not an all-clear.
"""

import datetime as dt
import json
import subprocess
import sys
import tomllib
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "constraints"
ENVIRONMENTS = (
    [FOLDER / f"{name}.txt" for name in ("base", "test", "dev", "tools")],
    [FOLDER / "train.txt"],  # these stand alone, with other versions of a few packages
    [FOLDER / "studio.txt"],
)
ACCEPTED = tomllib.loads(Path(__file__).with_name("advisories.toml").read_text())
SOURCES = ("pypi", "osv")


def main() -> int:
    """Ask one source after the other until each package is told about, and judge."""
    answers: dict[str, dict] = {}
    for source in SOURCES:
        for files in ENVIRONMENTS:
            told = ask(source, files)
            if not told:
                break
            answers = gather([*answers.values(), *told])
        if answers and all("vulns" in package for package in answers.values()):
            break
    return judge(answers, ACCEPTED, today=dt.datetime.now(dt.UTC).date())


def gather(packages: list[dict]) -> dict[str, dict]:
    """What was told of each version, since two files may pin two; by its name what nobody told of."""
    told = {f"{one['name']} {one['version']}": one for one in packages if "vulns" in one}
    names = {one["name"] for one in told.values()}
    return told | {one["name"]: one for one in packages if one["name"] not in names}


def judge(answers: dict[str, dict], accepted: dict[str, dict], *, today: dt.date) -> int:
    """Print what is known and what nobody could tell; 1 where a vulnerability is not accepted."""
    told = {name: package for name, package in answers.items() if "vulns" in package}
    if not told:
        print("ADVISORIES NOT CHECKED: no source of advisories can be reached from here")
        return 0
    silent = sorted(answers.keys() - told.keys())
    if silent:
        print(f"ADVISORIES NOT CHECKED for {len(silent)} packages: {', '.join(silent)}")
    bad = [
        f"{package['name']} {package['version']}: {one['id']}, mended in {', '.join(one['fix_versions']) or 'no release'}"
        for _, package in sorted(told.items())
        for one in package["vulns"]
        if not any(
            id_ in accepted and accepted[id_]["until"] >= today
            for id_ in (one["id"], *one["aliases"])
        )
    ]
    print(f"advisories: {len(told)} packages asked about, {len(bad)} vulnerabilities not accepted")
    for line in bad:
        print(line)
    return int(bool(bad))


def ask(source: str, files: list[Path]) -> list[dict]:
    """What `source` says of every package that is pinned in `files`; nothing where it cannot be reached."""
    command = [sys.executable, "-m", "pip_audit", "--disable-pip", "--require-hashes", "-s", source]
    command += ["-f", "json", "--progress-spinner", "off", "--timeout", "10"]
    command += [word for path in files for word in ("-r", str(path))]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    try:
        return json.loads(done.stdout)["dependencies"]
    except ValueError:
        reason = done.stderr.strip().rpartition("\n")[2]
        print(f"{source} did not answer: {reason[:200]}")
        return []


if __name__ == "__main__":
    sys.exit(main())
