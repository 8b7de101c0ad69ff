"""`--protocol`: our own names cost nothing, and every name can be told."""

import subprocess
import sys

import click
import pytest

from unreel.cli.options import ProtocolParamType
from unreel.core import registry


def test_our_own_names_are_taken_without_a_look_at_other_packages() -> None:
    registry._read_entry_points.cache_clear()
    assert ProtocolParamType("clip").convert("trace", None, None) == "trace"
    assert ProtocolParamType().convert("preference", None, None) == "preference"
    assert registry._read_entry_points.cache_info().misses == 0


@pytest.mark.parametrize("name", ["preference", "nope"])
def test_a_name_that_does_not_fit_is_refused_with_those_that_do(name: str) -> None:
    with pytest.raises(click.BadParameter, match="'trace', 'realism', 'reality'"):
        ProtocolParamType("clip").convert(name, None, None)


def test_a_review_loads_no_parser_before_there_is_something_to_read() -> None:
    code = (
        "import sys; from unreel.cli.review import review; from unreel.evaluation.review import build_review_questions;"
        "build_review_questions(['trace', 'realism', 'reality'], {});"
        "assert not [name for name in sys.modules if name.endswith('.parser') and 'unreel' in name]"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
