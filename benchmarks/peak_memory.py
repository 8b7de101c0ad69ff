"""The most memory that this program held: getrusage would count what the process was before it became the program.

    python benchmarks/peak_memory.py FILE COMMAND ...

runs `unreel COMMAND ...` and leaves its figure, in MiB, in FILE.
"""

import sys
from pathlib import Path


def peak_mib() -> int:
    """The highest resident size so far, as the kernel keeps it for this program alone."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) // 1024


def main() -> None:
    from unreel.cli.main import main as unreel

    kept = Path(sys.argv.pop(1))
    try:
        unreel()
    finally:
        kept.write_text(str(peak_mib()), encoding="ascii")


if __name__ == "__main__":
    main()
