"""The family of errors, their messages, and optional dependencies."""

import importlib
import warnings
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:  # types of optional dependencies
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure
    from pandas import DataFrame as DataFrame
else:
    Axes = DataFrame = Figure = Any


# The messages of torch if memory runs out on a CPU, for which it has no exception type.
_NO_MEMORY = (
    "DefaultCPUAllocator",
    "can't allocate memory",
    "calculation overflowed",
    "multiplication overflow",
)


class AbsentiaError(ValueError):
    """An error that the caller can fix. The message says what is wrong and what to do next.

    ``in_commands`` is the message for the command line, where it names options instead of Python arguments.

    Examples
    --------
    >>> raise AbsentiaError("x must be finite. Got NaN instead.")
    Traceback (most recent call last):
    ...
    absentia.errors.AbsentiaError: x must be finite. Got NaN instead.
    """

    def __init__(self, message: str = "", *, in_commands: str = "") -> None:
        super().__init__(message)
        self.in_commands = in_commands or message


def wrong(argument: str, must: str, got: object, then: str = "", then_in_commands: str = "") -> AbsentiaError:
    """Return the error for a bad value: what must hold, what was passed, what to do in Python and in commands."""
    problem = f"{argument} must {must}. Got {got} instead."
    message = f"{problem} {then}" if then else problem
    if not then_in_commands:
        return AbsentiaError(message)
    return AbsentiaError(message, in_commands=f"{problem} {then_in_commands}")


def require(package: str, extra: str | None = None) -> Any:
    """Import an optional package, or raise an error that names the command to install it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings on import concern the package's own dependencies
            return importlib.import_module(package)
    except ImportError as error:
        needed = f"This needs the package {package.split('.')[0]}."
        raise AbsentiaError(f"{needed} Run pip install 'absentia[{extra or package}]'.") from error


def lacks_memory(error: Exception) -> bool:
    """Return whether an error says that memory has run out."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return any(words in str(error) for words in _NO_MEMORY)
