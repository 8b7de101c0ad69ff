"""One process of a training on several devices: the `unreel` command as Accelerate starts it."""

from unreel.cli.main import main

if __name__ == "__main__":
    main()
