"""The command as it was typed, to be typed again."""

import shlex
import sys


def again(*more: str) -> str:
    """The same command for a shell, with the options `more` behind it."""
    typed = [part for part in sys.argv[1:] if part not in more]
    return f"`{shlex.join(['unreel', *typed, *more])}`"


def asks_again(run: str) -> str:
    """The command that asks again what failed in the run of that name."""
    return f"`{shlex.join(['unreel', 'eval', '--out', run, '--retry-failed'])}`"
