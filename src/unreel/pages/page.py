"""One HTML document that needs nothing beside it: styles, scripts and data are inside.

Everything that comes from models, prompts and file names is text here, never markup: templates escape
by themselves, data is JSON that cannot end its element, and the policy of the page runs those scripts
alone that were put in by name.

A template or a static file is named with the package that has it: `unreel.pages:player.js` lies in that
package's folder `static`, a template in its folder `templates`.
"""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache, partial
from importlib.resources import files
from typing import Final

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from unreel.core.errors import InvalidValueError

BASE: Final = "unreel.pages:base.css"
PRINT: Final = "unreel.pages:print.js"
_FRAME: Final = "unreel.pages:page.html"
_MEDIA: Final = "'self' data: blob: file:"
_ESCAPES: Final = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


def render(template: str, **values: object) -> Markup:
    """The template of that name, filled in; every value is escaped unless it is `Markup` itself."""
    return Markup(_environment().get_template(template).render(values))  # noqa: S704  autoescaped


def whole_page(
    *,
    title: str,
    body: Markup,
    styles: Sequence[str],
    scripts: Sequence[str],
    data: Mapping[str, object],
    fetches: bool = False,
) -> str:
    """A document that runs the named static files and nothing else.

    Args:
        title: of the window, as text.
        body: from `render`; its content lies in `<main id="main">`, where the skip link leads.
        styles: after `BASE`, which every page has.
        scripts: run in this order, at the end of the body, before `PRINT`, which every page has.
        data: for scripts, each under the id of its `<script type="application/json">` element.
        fetches: whether scripts may read files beside the page: in frames, or where a web server serves it.
    """
    if 'id="main"' not in body:
        msg = 'a page needs its content in <main id="main">. Add it to the template'
        raise InvalidValueError(msg)
    style_blocks = [_static(name) for name in dict.fromkeys((BASE, *styles))]
    script_blocks = [_static(name) for name in dict.fromkeys((*scripts, PRINT))]
    page = render(
        _FRAME,
        title=title,
        policy=_policy(styles=style_blocks, scripts=script_blocks, fetches=fetches),
        styles=style_blocks,
        body=body,
        data={name: _data_block(value) for name, value in data.items()},
        scripts=script_blocks,
    )
    return str(page)


@cache
def _environment() -> Environment:
    return Environment(
        loader=FunctionLoader(partial(_read, "templates")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _read(folder: str, name: str) -> str:
    package, _, path = name.partition(":")
    return files(package).joinpath(folder, path).read_text(encoding="utf-8")


@cache
def _static(name: str) -> Markup:
    text = _read("static", name)
    if "</script" in text.lower() or "</style" in text.lower():
        msg = f"{name} would end its own element. Write the tag in two pieces"
        raise InvalidValueError(msg)
    # A browser reads line ends as \n before it hashes.
    return Markup(text.replace("\r\n", "\n"))  # noqa: S704  a file of ours


def _policy(*, styles: Sequence[str], scripts: Sequence[str], fetches: bool) -> str:
    rules = {
        "default-src": "'none'",
        "script-src": " ".join(map(_source, scripts)) or "'none'",
        "style-src": " ".join(map(_source, styles)),
        "img-src": _MEDIA,
        "media-src": _MEDIA,
        "connect-src": "'self'" if fetches else "'none'",
        "frame-src": "'self' file:" if fetches else "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{rule} {sources}" for rule, sources in rules.items())


def _source(block: str) -> str:
    value = base64.b64encode(hashlib.sha256(block.encode()).digest()).decode()
    return f"'sha256-{value}'"


def _data_block(value: object) -> Markup:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Markup(text.translate(_ESCAPES))  # noqa: S704  nothing is left that could end the element
