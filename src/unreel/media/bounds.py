"""Bounds that both sides of the sandbox know: the process that opens a file and the one that checks its reply."""

from typing import Final

MAX_PIXELS: Final = 7680 * 4320

MAX_PACKETS: Final = 10 * 3600 * (60 + 50)
"""Ten hours at 60 frames and 50 sound packets a second: a bound on hostile files, not on people."""

MOST_S: Final = 1 << 33
"""272 years. Live streams count from 1970, QuickTime from 1904; a time beyond is damage or an attack."""
FASTEST: Final = 1_000_000
"""Frames per second of the fastest cameras."""

MAX_TAGS: Final = 64
MAX_NAME: Final = 64
MAX_VALUE: Final = 120

SAMPLE_RATE_HZ: Final = 16_000
MAX_SAMPLES: Final = SAMPLE_RATE_HZ * 3600
"""One hour of sound, 115 MB: more than a model takes, and less than a child process may hold."""

N_PICKED: Final = 8
"""Pictures that a scan keeps."""

JPEG_QUALITY: Final = 90
