"""Says how large the base install is, and fails above 400 MB. Run it in an environment without extras."""

import importlib.metadata
import sys

LIMIT_MB = 400
# What a bare virtual environment brings by itself.
GIVEN = {"pip", "setuptools"}


def main() -> int:
    """Print the size of every installed package's files, largest first."""
    sizes = {
        distribution.name: sum(
            path.stat().st_size
            for file in distribution.files or ()
            if (path := distribution.locate_file(file)).is_file()
        )
        for distribution in importlib.metadata.distributions()
        if distribution.name not in GIVEN
    }
    total_mb = sum(sizes.values()) / 1e6
    largest = ", ".join(
        f"{name} {size / 1e6:.0f}" for name, size in sorted(sizes.items(), key=lambda s: -s[1])[:5]
    )
    print(f"base install: {total_mb:.0f} MB in {len(sizes)} packages ({largest})")
    return int(total_mb >= LIMIT_MB)


if __name__ == "__main__":
    sys.exit(main())
