"""One self-contained HTML document: styles, scripts and data are inline.

Text from models, prompts and file names is never markup: templates escape automatically, data is
JSON that cannot end its element, and the content security policy allows only the scripts that were
added by name.

A template or a static file is named with its package: `unreel.pages:player.js` is in that package's
folder `static`, a template in its folder `templates`.
"""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache, partial
from importlib.resources import files

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from unreel.core.errors import InvalidValueError

BASE = "unreel.pages:base.css"
PRINT = "unreel.pages:print.js"
_FRAME = "unreel.pages:page.html"
_MEDIA = "'self' data: blob: file:"
_ESCAPES = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


def render_template(template: str, **values: object) -> Markup:
    """Render the template called `template`; every value is escaped unless it is `Markup`."""
    return Markup(_build_template_environment().get_template(template).render(values))  # noqa: S704  autoescaped


def build_html_page(
    *,
    title: str,
    body: Markup,
    styles: Sequence[str],
    scripts: Sequence[str],
    data: Mapping[str, object],
    fetches: bool = False,
    served_at: str = "",
) -> str:
    """Return an HTML document with the given styles and scripts; the browser runs no other script.

    `body` has the element `<main id="main">`, the target of the skip link. `data` is by the id of its
    element. With `fetches`, scripts may read files next to the page. `served_at` is the URL prefix of
    styles and scripts on a web application, whose forms the page may send; without it they are inline.
    """
    if 'id="main"' not in body:
        raise InvalidValueError(
            'a page needs its content in <main id="main">. Add it to the template'
        )
    style_names = [*dict.fromkeys((BASE, *styles))]
    script_names = [*dict.fromkeys((*scripts, PRINT))]
    inline_styles = [] if served_at else [read_static_file(name) for name in style_names]
    inline_scripts = [] if served_at else [read_static_file(name) for name in script_names]
    policy = {
        "default-src": "'none'",
        "script-src": "'self'" if served_at else _format_hash_sources(inline_scripts),
        "style-src": "'self'" if served_at else _format_hash_sources(inline_styles),
        "img-src": _MEDIA,
        "media-src": _MEDIA,
        "connect-src": "'self'" if fetches else "'none'",
        "frame-src": "'self' file:" if fetches else "'none'",
        "base-uri": "'none'",
        "form-action": "'self'" if served_at else "'none'",
    }
    page = render_template(
        _FRAME,
        title=title,
        policy="; ".join(f"{rule} {sources}" for rule, sources in policy.items()),
        style_links=[served_at + name for name in style_names] if served_at else [],
        styles=inline_styles,
        body=body,
        data={name: _format_json_block(value) for name, value in data.items()},
        script_links=[served_at + name for name in script_names] if served_at else [],
        scripts=inline_scripts,
    )
    return str(page)


@cache
def _build_template_environment() -> Environment:
    return Environment(
        loader=FunctionLoader(partial(_read_package_file, "templates")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _read_package_file(folder: str, name: str) -> str:
    package, _, path = name.partition(":")
    return files(package).joinpath(folder, path).read_text(encoding="utf-8")


@cache
def read_static_file(name: str) -> Markup:
    """Return the text of the static file called `name`, for use inside an HTML element.

    Raise `InvalidValueError` if the text contains a closing tag that would end its HTML element.
    """
    text = _read_package_file("static", name)
    if "</script" in text.lower() or "</style" in text.lower():
        raise InvalidValueError(f"{name} would end its own element. Write the tag in two pieces")
    # A browser reads line ends as \n before it hashes.
    return Markup(text.replace("\r\n", "\n"))  # noqa: S704  a file of ours


def _format_hash_sources(blocks: Sequence[str]) -> str:
    digests = (
        base64.b64encode(hashlib.sha256(block.encode()).digest()).decode() for block in blocks
    )
    return " ".join(f"'sha256-{digest}'" for digest in digests) or "'none'"


def _format_json_block(value: object) -> Markup:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Markup(text.translate(_ESCAPES))  # noqa: S704  nothing is left that could end the element
