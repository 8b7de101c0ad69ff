"""The desk in a real browser: clips are dropped, evidence comes, keys alone are enough."""

import base64
import time
from pathlib import Path
from typing import Any

import pytest

from browser import Watched
from chat import says, serve_chat
from desk.desk_process import running
from scripted import ANSWERS
from synthesise import ClipRecipe, synthesise
from unreel.desk.custody_bundle import verify_custody_bundle

DROP = """([name, data]) => {
  const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
  window.dropped = window.dropped || new DataTransfer();
  window.dropped.items.add(new File([bytes], name, {type: "video/mp4"}));
}"""
DROPPED = """() => document.getElementById("drop").dispatchEvent(
  new DragEvent("drop", {dataTransfer: window.dropped, bubbles: true, cancelable: true}))"""
HOSTILE = "<img src=x onerror='window.hacked=1'>"


@pytest.fixture(scope="module")
def clips() -> dict[str, bytes]:
    whole = synthesise(ClipRecipe(scene="street", flawed=True, width=320, height=180, n_frames=24))
    room = synthesise(ClipRecipe(scene="room", width=320, height=180, n_frames=24, seed=5))
    return {f"street {HOSTILE}.mp4": whole, "room.mp4": room, "damaged.mp4": whole[:900]}


def fits(page: Any) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"))


def drop_clips(page: Any, clips: dict[str, bytes]) -> None:
    for name, data in clips.items():
        page.evaluate(DROP, [name, base64.b64encode(data).decode()])
    page.evaluate(DROPPED)
    page.wait_for_url("**/batches/**")


def check_on_phone(browser: Any, state: Any, urls: list[str]) -> None:
    context = browser.new_context(
        viewport={"width": 390, "height": 800}, color_scheme="dark", storage_state=state
    )
    phone = Watched(context.new_page())
    for url in urls:
        page = phone.open_at(url)
        page.locator("h1").wait_for()
        assert fits(page), url
        assert phone.violations() == [], url
    assert "looks AI-generated, from 0.25" in page.locator("h1").inner_text()
    assert phone.complaints == []
    context.close()


def decide_with_keys(page: Any) -> None:
    """Type a note and choose a verdict, without a mouse."""
    page.locator("#text").focus()
    page.keyboard.type("seen before <b>x</b>")
    page.keyboard.press("Tab")
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.locator(".entry").wait_for()
    entry = page.locator(".entry").inner_text()
    assert "verdict not known" in entry
    assert "seen before <b>x</b>" in entry


def check_bundle(page: Any, folder: Path) -> None:
    with page.expect_download() as download:
        page.get_by_role("link", name="Download bundle").click()
    bundle = Path(download.value.path())
    assert verify_custody_bundle(bundle).is_intact
    changed = bytearray(bundle.read_bytes())
    changed[len(changed) // 2] ^= 1
    (folder / "changed.zip").write_bytes(changed)
    assert not verify_custody_bundle(folder / "changed.zip").is_intact


def test_the_browser_opens_a_private_file_and_no_address_with_the_token(
    chromium, tmp_path: Path
) -> None:
    program = tmp_path / "browser"
    program.write_text(f"#!/bin/sh\nprintf '%s' \"$*\" > {tmp_path}/opened\n")
    program.chmod(0o700)
    with running(tmp_path, browser=program) as (_process, link):
        opened = tmp_path / "opened"
        until_s = time.monotonic() + 20
        while not opened.is_file() or not opened.read_text():
            assert time.monotonic() < until_s
            time.sleep(0.05)
        address = opened.read_text()
        assert address.startswith("file://")
        assert "token" not in address
        file = Path(address.removeprefix("file://"))
        assert file.stat().st_mode & 0o777 == 0o600
        assert link in file.read_text()
        page = chromium.new_page()
        page.goto(address)
        page.locator("#drop").wait_for()
        assert page.url == link.partition("login")[0]
        assert not file.exists()


@pytest.mark.parametrize("target", ["#drop", "h1"])
def test_a_dropped_folder_is_explained_and_its_files_are_accepted(
    chromium, tmp_path: Path, clips, target: str
) -> None:
    folder = tmp_path / "my clips"
    folder.mkdir()
    (folder / "room.mp4").write_bytes(clips["room.mp4"])
    with running(tmp_path) as (_process, link):
        page = chromium.new_page()
        page.goto(link)
        box = page.locator(target).bounding_box()
        devtools = page.context.new_cdp_session(page)

        def drop(path: Path) -> None:
            data = {"items": [], "files": [str(path)], "dragOperationsMask": 1}
            for kind in ("dragEnter", "dragOver", "drop"):
                event = {"type": kind, "x": box["x"] + 5, "y": box["y"] + 5, "data": data}
                devtools.send("Input.dispatchDragEvent", event)

        drop(folder)
        message = page.get_by_text("“my clips” is a folder. Open it, and drop the video files")
        message.wait_for(timeout=5000)
        assert page.url == link.partition("login")[0]
        drop(folder / "room.mp4")
        page.wait_for_url("**/cases/**")
        page.close()


@pytest.mark.timeout(600)
def test_three_dropped_clips_become_evidence(chromium, tmp_path: Path, clips) -> None:
    def reply(body: bytes, _headers: object) -> object:
        return says(ANSWERS["trace" if b"coordinates" in body else "realism"])

    with serve_chat(reply) as port:
        model = f"vllm/qwen3-vl@http://127.0.0.1:{port}/v1"
        (tmp_path / "desk.toml").write_text(f"[[reviewers]]\nname = 'One'\nmodels = ['{model}']\n")
        with running(tmp_path) as (_process, link):
            context = chromium.new_context(viewport={"width": 1280, "height": 900})
            watched = Watched(context.new_page())
            page = watched.open_at(link)
            assert "token" not in page.url
            assert watched.violations() == []
            drop_clips(page, clips)
            batch = page.url
            page.locator("#changed").wait_for(state="visible", timeout=240_000)
            while "3 of 3" not in page.locator("h1").inner_text():
                page.wait_for_timeout(500)
                page.reload()
            text = page.locator("main").inner_text()
            assert "Not reviewed: " in text
            assert text.count("says this clip looks AI-generated, from 0.25 s") == 2
            assert f"street {HOSTILE}.mp4" in text
            page.get_by_role("link", name="street").focus()
            page.keyboard.press("Enter")
            page.wait_for_url("**/cases/**")
            watched.wait("document.querySelector('video')?.readyState >= 2")
            assert "looks AI-generated, from 0.25" in page.locator("h1").inner_text()
            assert page.locator(".keyframes img").count() >= 1
            assert page.evaluate("[...document.images].every((i) => i.naturalWidth > 0)")
            assert page.evaluate("window.hacked === undefined")
            assert "%" not in page.locator(".said").inner_text()
            decide_with_keys(page)
            assert fits(page)
            assert watched.violations() == []
            assert page.pdf()[:4] == b"%PDF"
            check_bundle(page, tmp_path)
            assert watched.complaints == []
            home = page.url.partition("/cases")[0] + "/"
            check_on_phone(chromium, context.storage_state(), [home, batch, page.url])
