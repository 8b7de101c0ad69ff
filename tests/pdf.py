"""The words of a PDF that Chromium has made; nobody else's are understood."""

import re
import unicodedata
import zlib
from collections.abc import Iterator

_OBJECT = re.compile(rb"(?:^|\n)(\d+) 0 obj\n(.*?)\nendobj", re.DOTALL)
_STREAM = re.compile(rb"/FlateDecode.*?stream\r?\n(.*)\r?\nendstream", re.DOTALL)
_FONT = re.compile(rb"/ToUnicode (\d+) 0 R")
_SHOWN = re.compile(rb"/F(\d+) [\d.]+ Tf|<([0-9A-Fa-f]+)> Tj")
_TABLE = re.compile(rb"begin(bfchar|bfrange)\n(.*?)\nend", re.DOTALL)
_CODE = re.compile(rb"<([0-9A-Fa-f]+)>")


def words_of(pdf: bytes) -> str:
    """All that is written in it, in the order in which it is drawn, without spaces."""
    objects = {int(number): body for number, body in _OBJECT.findall(pdf)}
    fonts = {
        number: _letters(_unpacked(objects[int(found[1])]))
        for number, body in objects.items()
        if (found := _FONT.search(body))
    }
    said = (
        letter
        for body in objects.values()
        if b"/Type /Font" not in body
        for letter in _shown(_unpacked(body), fonts)
    )
    return unicodedata.normalize("NFKC", "".join("".join(said).split()))


def n_sheets(pdf: bytes) -> int:
    """How many sheets of paper it takes."""
    return len(re.findall(rb"/Type /Page\n", pdf))


def _unpacked(body: bytes) -> bytes:
    packed = _STREAM.search(body)
    return zlib.decompress(packed[1]) if packed else b""


def _shown(drawing: bytes, fonts: dict[int, dict[int, str]]) -> Iterator[str]:
    letters: dict[int, str] = {}
    for font, codes in _SHOWN.findall(drawing):
        if font:
            letters = fonts[int(font)]
        for at in range(0, len(codes), 4):
            yield letters.get(int(codes[at : at + 4], 16), "")


def _letters(table: bytes) -> dict[int, str]:
    letters = {}
    for kind, lines in _TABLE.findall(table):
        for line in lines.splitlines():
            *codes, text = (bytes.fromhex(code.decode()) for code in _CODE.findall(line))
            first, last = (int.from_bytes(code, "big") for code in (codes[0], codes[-1]))
            if kind == b"bfchar":
                letters[first] = text.decode("utf-16-be")
            else:
                start = int.from_bytes(text, "big")
                letters |= {code: chr(start + code - first) for code in range(first, last + 1)}
    return letters
