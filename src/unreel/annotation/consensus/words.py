"""Select the text to keep if several people wrote one."""

from collections import Counter
from collections.abc import Callable, Sequence

from unreel.core.identity import digest


def choose_words(
    task: str,
    texts: Sequence[tuple[str, str]],
    *,
    distance: Callable[[str], float],
) -> str:
    """Of `texts` by annotator, whose stand: the closest of those who wrote any; "" where nobody did.

    Of equally close ones the text that most people wrote stands; of these, one that the task's id draws,
    so that nobody's words stand more often for the name they have.
    """
    written = Counter(text for _, text in texts if text)
    ranked = sorted(
        (distance(annotator), -written[text], digest("words", task, annotator), annotator)
        for annotator, text in texts
        if text
    )
    return ranked[0][-1] if ranked else ""
