"""The generated Python reference has every public name."""

import importlib.util
from pathlib import Path

import unreel

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "docs" / "reference" / "make_python.py"


def test_the_reference_has_every_function_and_word_in_their_order() -> None:
    spec = importlib.util.spec_from_file_location("make_python", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = module.write_page()
    assert [name for name in unreel.__all__ if f"### `{name}`\n" not in page] == []
    assert page.index("### `score`") < page.index("## Words") < page.index("### `AudioFacts`")
