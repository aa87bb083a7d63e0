"""`python -m absentia`: the same as `absentia`, but Python has looked for packages in the working directory first."""

import sys

from absentia_command import main

if __name__ == "__main__":
    sys.path.append(sys.path.pop(0))  # the working directory, so that no file there stands in for a package
    main()
