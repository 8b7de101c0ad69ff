"""The desk as a process, for tests: start it, sign in, drop clips, kill it."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx


@contextmanager
def running(
    folder: Path, *options: str, browser: Path | None = None
) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """The command in a process of its own, and its one-time link; it opens a page with `browser`."""
    command = [str(Path(sys.executable).with_name("unreel")), "desk", "--port", "0", *options]
    if (folder / "desk.toml").is_file():
        command += ["--config", str(folder / "desk.toml")]
    environment = os.environ | {"BROWSER": str(browser)}
    command += [] if browser else ["--no-browser"]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, cwd=folder, env=environment
    )
    lines: list[str] = []
    try:
        assert process.stderr is not None
        for line in process.stderr:
            lines.append(line)
            if found := re.search(r"http://\S+/login\S+", line):
                break
        else:
            raise AssertionError("".join(lines))
        yield process, found[0]
    finally:
        process.kill()
        process.wait()
        assert process.stderr is not None
        process.stderr.close()


def sign_in(link: str) -> tuple[httpx.Client, str]:
    """A client with a session, and the token of its forms."""
    base = link.partition("/login")[0]
    client = httpx.Client(
        base_url=base, follow_redirects=True, timeout=60, headers={"origin": base}
    )
    page = client.get(link).text
    return client, page.split('name="form_token" value="')[1].split('"')[0]


def drop(client: httpx.Client, token: str, reviewers: str, clips: dict[str, bytes]) -> str:
    """Upload clips; the path of their page."""
    files = [("clips", clip) for clip in clips.items()]
    data = {"form_token": token, "reviewers": reviewers}
    reply = client.post("/cases", data=data, files=files)
    assert reply.status_code == 200, reply.text
    return reply.url.path
