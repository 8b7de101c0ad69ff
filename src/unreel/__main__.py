"""The command line as `python -m unreel`."""

from unreel.cli.main import main

if __name__ == "__main__":
    main()
