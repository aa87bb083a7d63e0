"""The run-time type checker of the tests: an int counts as a float, as it does for every static checker."""

import inspect
from collections import Counter

from beartype import BeartypeConf
from beartype import beartype as _beartype

_check = _beartype(conf=BeartypeConf(is_pep484_tower=True))
_OFTEN = 10
_defined = Counter()  # how often each local function was defined


def beartype(function):
    """Check a function; one that is local to another only the first times that it is defined, which takes long."""
    name = getattr(function, "__qualname__", "")
    if "<locals>" in name:
        _defined[function.__module__, name] += 1
        if _defined[function.__module__, name] > _OFTEN:
            return function
    return _check(function)


def unchecked(function):
    """Reach past the checker, to see what a user sees who passes the wrong type."""
    return inspect.unwrap(function)
