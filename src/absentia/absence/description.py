"""What an absence is, in one line, for records and reports."""

from __future__ import annotations

from absentia.absence.protocols import Absence

_LONGEST = 200


def describe_absence(absence: Absence) -> str:
    """Name an absence in one line: what it says of itself first, or its class.

    >>> import absentia as ab
    >>> describe_absence(ab.Baseline(0.0))
    'Baseline(0)'
    """
    if type(absence).__repr__ is object.__repr__:
        return type(absence).__name__
    return repr(absence).splitlines()[0][:_LONGEST]
