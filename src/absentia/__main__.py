"""`python -m absentia`: the same as `absentia`, except that Python itself looks in the working directory first."""

import sys

from absentia_command import main

if __name__ == "__main__":
    # Search the working directory last, so that no file there shadows a package.
    working_directory = sys.path.pop(0)
    sys.path.append(working_directory)
    main()
