"""How rightly the parsers read hard answers, against what people read in them.

    python benchmarks/reading.py tests/protocols/answers.jsonl

Prints the table of decision 0014: parts read wrongly, and parts that were there and not read, for every set and mode.
`--show` lists them, `--json` prints the same as one document.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from protocols.hard_answers import Part, read_all

MODES = ("strict", "lenient")


def main() -> None:
    asked = _arguments()
    rows = [row for file in asked.answers for row in _rows(file)]
    if asked.json:
        print(json.dumps(rows, ensure_ascii=False))
        return
    print(
        "| set | mode | protocol | parts | wrong | needlessly failed |\n|---|---|---|---|---|---|"
    )
    for row in rows:
        needless = f"{len(row['needless'])} of {row['due']}"
        print(
            f"| {row['set']} | {row['mode']} | {row['protocol']} | {row['parts']} | {len(row['wrong'])} | {needless} |"
        )
    for line in _lines(rows) if asked.show else ():
        print(line)


def _arguments() -> Any:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("answers", type=Path, nargs="+", metavar="FILE")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    parser.add_argument("--show", action="store_true", help="list what was read wrongly or not")
    return parser.parse_args()


def _rows(file: Path) -> Iterator[dict[str, Any]]:
    for mode in MODES:
        parts = read_all(file, mode)
        yield _row(file, mode, "all", parts)
        for name in sorted({part.protocol for part in parts}):
            yield _row(file, mode, name, [part for part in parts if part.protocol == name])


def _row(file: Path, mode: str, name: str, parts: list[Part]) -> dict[str, Any]:
    return {
        "set": str(file),
        "mode": mode,
        "protocol": name,
        "parts": len(parts),
        "due": sum(part.can_be_needless for part in parts),
        "wrong": [_told(part) for part in parts if part.is_wrong],
        "needless": [_told(part) for part in parts if part.is_needless],
    }


def _told(part: Part) -> dict[str, Any]:
    return {"name": part.name, "true": part.true, "read": part.read, "text": part.text}


def _lines(rows: list[dict[str, Any]]) -> Iterator[str]:
    for row in rows:
        if row["protocol"] == "all":
            continue
        where = f"{row['mode']} {row['protocol']}"
        for one in row["wrong"]:
            yield f"wrong: {where} {one['name']}: read {one['read']}, true {one['true']}: {_on_one_line(one)}"
        for one in row["needless"]:
            yield f"needless: {where} {one['name']}: true {one['true']}: {_on_one_line(one)}"


def _on_one_line(one: dict[str, Any]) -> str:
    return str(one["text"]).replace("\n", "\u23ce")


if __name__ == "__main__":
    main()
