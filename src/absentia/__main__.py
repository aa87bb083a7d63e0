"""`python -m absentia`: the same as `absentia`."""

from absentia_command import main

if __name__ == "__main__":
    main()
