"""Entry point that Accelerate starts in each process of a training on several devices."""

from unreel.cli.main import main

if __name__ == "__main__":
    main()
