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


# What torch says if memory runs out on a CPU, where it has no exception type for that.
_NO_MEMORY = (
    "DefaultCPUAllocator",
    "can't allocate memory",
    "calculation overflowed",
    "multiplication overflow",
)


class AbsentiaError(ValueError):
    """An error that the caller can mend: the message says what is wrong and what to do next.

    Examples
    --------
    >>> raise AbsentiaError("x must be finite. Got NaN instead.")
    Traceback (most recent call last):
    ...
    absentia.errors.AbsentiaError: x must be finite. Got NaN instead.
    """


def wrong(argument: str, must: str, got: object, then: str = "") -> AbsentiaError:
    """Return the error for a bad value: what must hold, what was passed, what to do."""
    return AbsentiaError(f"{argument} must {must}. Got {got} instead." + (f" {then}" if then else ""))


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
