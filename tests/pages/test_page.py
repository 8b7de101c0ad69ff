"""One document, nothing beside it, and nothing in it that was not put in by name."""

import json
import re

import pytest
from markupsafe import Markup

from unreel.pages.html_page import build_html_page

MAIN = Markup('<main id="main"><h1>A page</h1>{}</main>')
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\u2028\u2029&"


PLAIN = MAIN.format("text")


def build(*, body: Markup = PLAIN, title: str = "A page", **parts) -> str:
    chosen = {"styles": [], "scripts": [], "data": {}} | parts
    return build_html_page(title=title, body=body, **chosen)


@pytest.mark.parametrize("way", ["disk", "server"])
def test_its_own_scripts_and_styles_run_from_disk_and_from_a_server(
    watched, serve, tmp_path, way
) -> None:
    file = tmp_path / "page.html"
    file.write_text(
        build(scripts=["unreel.pages:player.js"], styles=["unreel.pages:player.css"]),
        encoding="utf-8",
    )
    page = watched.open(file) if way == "disk" else watched.open_at(serve(tmp_path) + "page.html")
    assert page.evaluate("typeof unreelPlayer.mount") == "function"
    assert page.evaluate("getComputedStyle(document.body).margin") == "0px"
    assert watched.violations() == []


@pytest.mark.parametrize("way", ["disk", "server"])
def test_pictures_beside_the_page_and_inside_it_are_shown(watched, serve, tmp_path, way) -> None:
    from PIL import Image

    Image.new("RGB", (8, 6), (200, 30, 30)).save(tmp_path / "beside.png")
    dot = "data:image/gif;base64,R0lGODlhAQABAIAAAP///wAAACH5BAEAAAAALAAAAAABAAEAAAICRAEAOw=="
    pictures = Markup('<img alt="" src="beside.png"><img alt="" src="{}">').format(dot)
    (tmp_path / "page.html").write_text(build(body=MAIN.format(pictures)), encoding="utf-8")
    page = (
        watched.open(tmp_path / "page.html")
        if way == "disk"
        else watched.open_at(serve(tmp_path) + "page.html")
    )
    assert page.evaluate("[...document.images].map(i => i.naturalWidth)") == [8, 1]


def test_what_models_and_files_say_runs_nothing(watched, tmp_path) -> None:
    html = build(title=HOSTILE, body=MAIN.format(HOSTILE), data={"said": {"text": HOSTILE}})
    (tmp_path / "page.html").write_text(html, encoding="utf-8")
    page = watched.open(tmp_path / "page.html")
    assert page.evaluate("document.images.length") == 0
    read = page.evaluate("JSON.parse(document.getElementById('said').textContent).text")
    assert read == HOSTILE


def test_a_script_that_was_not_put_in_by_name_is_refused(chromium, tmp_path) -> None:
    html = build().replace("</main>", "<script>document.title = 'run'</script></main>")
    (tmp_path / "page.html").write_text(html, encoding="utf-8")
    page = chromium.new_page()
    heard: list[str] = []
    page.on("console", lambda message: heard.append(message.text))
    page.goto((tmp_path / "page.html").as_uri())
    assert page.title() == "A page"
    assert any("Content Security Policy" in text for text in heard)


def test_the_policy_allows_no_inline_code_and_no_network() -> None:
    policy = re.search(
        r'Security-Policy" content="([^"]*)"', build(scripts=["unreel.pages:player.js"])
    )
    assert policy is not None
    rules = dict(rule.strip().split(" ", 1) for rule in policy[1].replace("&#39;", "'").split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["base-uri"] == rules["form-action"] == "'none'"
    assert "unsafe" not in policy[1]
    assert "http" not in policy[1]
    assert rules["script-src"].startswith("'sha256-")


def test_data_is_json_that_cannot_end_its_element() -> None:
    html = build(data={"said": [HOSTILE]})
    block = re.search(r'id="said">(.*?)</script>', html, re.DOTALL)
    assert block is not None
    assert not set("<>&\u2028\u2029") & set(block[1])
    assert json.loads(block[1]) == [HOSTILE]
