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
    """Return the text of the closest annotator in `texts`; "" if there is no text.

    Among equally close ones the most frequent text is chosen; then a random one by the task's id,
    so that no annotator is preferred by name.
    """
    written = Counter(text for _, text in texts if text)
    ranked = sorted(
        (distance(annotator), -written[text], digest("words", task, annotator), annotator)
        for annotator, text in texts
        if text
    )
    return ranked[0][-1] if ranked else ""
