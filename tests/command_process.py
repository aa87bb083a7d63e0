"""The command in a process of its own."""

import sys

COMMAND = [sys.executable, "-P", "-c", "from absentia_command import main; main()"]
