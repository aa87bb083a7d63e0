"""`python -m absentia`: the same as `absentia`."""

from absentia.cli import main

if __name__ == "__main__":
    main()
