"""`python -m absentia`: the same as `absentia`, but for packages that are imported first; see `docs/scaling.md`."""

import sys

from absentia_command import main

if __name__ == "__main__":
    sys.path.append(sys.path.pop(0))  # the working directory, so that no file there stands in for a package
    main()
