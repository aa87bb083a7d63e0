"""`python -m absentia`: the same as `absentia`, but for packages that are imported first; see `docs/scaling.md`."""

import os
import sys

from absentia_command import main

if __name__ == "__main__":
    if sys.path[0] in ("", os.getcwd()):  # last, so that no file here stands in for a package
        sys.path.append(sys.path.pop(0))
    main()
