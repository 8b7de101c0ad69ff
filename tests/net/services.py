"""The reward service and the desk as processes, with one clip each."""

import asyncio
import json
import re
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

from desk.desk_process import drop, running, sign_in
from net.commands import read_json
from reward_process import ask, served


async def _ask_rewards(address: str) -> dict[str, Any]:
    async with httpx.AsyncClient(base_url=address, timeout=60) as client:
        documents = {}
        for clip in ("c0.mp4", "c2.mp4", "clips.csv"):
            reply = await ask(client, Path(clip).read_bytes())
            documents[clip] = {"status": reply.status_code, "body": reply.json()}
        reply = await client.post("/v1/rewards", json={"items": []})
        documents["no items"] = {"status": reply.status_code, "body": reply.json()}
        for path in ("/v1/health", "/v1/info", "/openapi.json"):
            reply = await client.get(path)
            documents[path] = {"status": reply.status_code}
            if reply.status_code == 200:
                documents[path]["body"] = _without_prose(reply.json())
        return documents


def _without_prose(document: Any) -> Any:
    """Return an OpenAPI document without titles and descriptions."""
    match document:
        case dict():
            prose = {"title", "description", "summary"}
            items = document.items()
            return {k: _without_prose(v) for k, v in items if k not in prose or isinstance(v, dict)}
        case list():
            return [_without_prose(one) for one in document]
    return document


def serve_rewards(model: str) -> Any:
    """Return the replies of a reward service, and its log."""
    with served(Path(), "--model", model, "--log", "served.jsonl") as (_, address):
        documents = asyncio.run(_ask_rewards(address))
    rows = Path("served.jsonl").read_text(encoding="utf-8").splitlines()
    return documents | {"log": [json.loads(row) for row in rows]}


def serve_desk(model: str) -> Any:
    """Return the page and the custody bundle of a case of the desk, and what `desk verify` prints."""
    Path("desk.toml").write_text(
        f"[[reviewers]]\nname = 'One'\nmodels = ['{model}']\nprotocols = ['trace', 'reality']\n",
        encoding="utf-8",
    )
    with running(Path(), "--trusted") as (_, link):
        client, token = sign_in(link)
        page = drop(client, token, "One", {"c2.mp4": Path("c2.mp4").read_bytes()})
        for _ in range(600):
            reply = client.get(f"{page.rstrip('/')}/bundle.zip")
            if reply.headers["content-type"] == "application/zip":
                break
            time.sleep(0.1)
        pages = {path: read_page_lines(client.get(path).text) for path in ("/", page)}
    Path("bundle.zip").write_bytes(reply.content)
    with zipfile.ZipFile("bundle.zip") as bundle:
        names = bundle.namelist()
    verified = read_json("desk", "verify", "bundle.zip")
    for original in verified["originals"]:
        del original["id"]
    return {"pages": pages, "bundle": names, "verified": verified}


def read_page_lines(page: str) -> list[str]:
    """Return the lines of text of a page of the desk."""
    text = re.sub(
        r"<(style|script).*?</\1>|<[^>]*>|\d\d:\d\d UTC|\d+\.\d\d s\b", "\n", page, flags=re.DOTALL
    )
    return [line.strip() for line in text.splitlines() if line.strip()]


SERVICES: dict[str, Callable[[str], Any]] = {"reward serve": serve_rewards, "desk": serve_desk}
