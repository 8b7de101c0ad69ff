"""Number words are read as numbers where they stand as words."""

import pytest

from unreel.protocols.claim_words import replace_number_words


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ("at three seconds", "at 3 seconds"),
        ("'two' seconds", "'2' seconds"),
        ("one's own seI'm sei\u2019m", "one's own seI'm sei\u2019m"),
    ],
)
def test_a_word_before_an_apostrophe_and_letters_is_no_number(said: str, read: str) -> None:
    assert replace_number_words(said) == read
