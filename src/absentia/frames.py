"""pandas, imported where a DataFrame is asked for and not before."""

from __future__ import annotations

from types import ModuleType

from absentia.errors import AbsentiaError


def import_pandas() -> ModuleType:
    """Import pandas, or say how to get it."""
    try:
        import pandas
    except ImportError as error:
        raise AbsentiaError(
            "pandas must be installed for a DataFrame. Got none instead. Run: pip install pandas."
        ) from error
    return pandas
