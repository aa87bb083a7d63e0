"""The run-time type checker of the tests: an int counts as a float, as it does for every static checker."""

import inspect

from beartype import BeartypeConf
from beartype import beartype as _beartype

beartype = _beartype(conf=BeartypeConf(is_pep484_tower=True))


def unchecked(function):
    """Reach past the checker, to see what a user sees who passes the wrong type."""
    return inspect.unwrap(function)
