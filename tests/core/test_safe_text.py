"""What reaches a terminal is text and nothing else."""

import sys
import unicodedata

import pytest

from unreel.core.safe_text import MARK, sanitise_line

TURNING = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
EVERY = [chr(code) for code in range(sys.maxunicode + 1)]


def test_every_control_line_end_turn_and_lone_surrogate_of_unicode_is_marked() -> None:
    acting = [
        c
        for c in EVERY
        if unicodedata.category(c) in {"Cc", "Cs", "Zl", "Zp"}
        or unicodedata.bidirectional(c) in TURNING
    ]
    assert len(acting) > 2000
    assert [c for c in acting if sanitise_line(c) != MARK] == []


def test_every_character_that_shows_stays() -> None:
    shown = [c for c in EVERY if c.isprintable()]
    assert len(shown) > 100_000
    assert [c for c in shown if sanitise_line(c) != c] == []


@pytest.mark.parametrize(
    "text",
    ["\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", "\U0001f469\u200d\U0001f680", "\u3000"],
)
def test_the_joiners_and_spaces_of_real_scripts_stay(text: str) -> None:
    assert sanitise_line(text) == text


def test_what_comes_out_can_be_written_in_any_unicode_encoding() -> None:
    every = sanitise_line("".join(EVERY))
    assert every.encode().decode() == every
    assert len(every.splitlines()) == 1


def test_a_text_of_a_megabyte_costs_little() -> None:
    assert sanitise_line("\x1b[2J" * 250_000) == f"{MARK}[2J" * 250_000
