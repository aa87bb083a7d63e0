"""Checks of the arguments of public functions, by their type hints.

Every public function and class has the decorator `checked`. It converts numbers before a call, because a wrong number
may give a wrong result: numpy's numbers become Python's, and a whole number may be written as a float, such as 1e4.
Other types are compared with the hints only if a call fails. This costs nothing when the call succeeds, and the
function's own messages, which are more specific, come first.
"""

from __future__ import annotations

import functools
import inspect
import random
import re
import typing
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from absentia.errors import AbsentiaError, lacks_memory, wrong

Public = TypeVar("Public", bound=Callable[..., Any])

# A wrong argument is shown in full if it has at most this many characters.
_LETTERS_SHOWN = 60
# beartype checks one random item of a list, so it is asked this many times.
_LOOKS = 64
# Numbers of these types may have to be converted. Python's own whole numbers are what they are.
_MAY_CONVERT = (float, np.generic)
# The largest whole number that torch can hold is below this one.
_TOO_LARGE = 2**63
# What messages call the types in signatures: patterns of hints and their wording, applied in this order.
_WORDS_OF_HINTS = {
    r"Mapping\[.*]": "a mapping",
    r"\bTable\b": "a tensor, an array or a table of numbers",
    r"\bArray\b": "a tensor or an array",
    r"\b(Samples|Outputs|Rows)\b": "a tensor",
    r"\bClasses\b": "classes as numbers or names",
    r"\bReadout\b": "a readout such as LogOdds(y)",
    r"\bTimeLimit\b": "a limit such as TimeLimit(seconds)",
    r"\bLearningOptions\b": "options such as LearningOptions(steps=50)",
    r"\w+\[Tensor[^]]*]|Tensor": "a tensor",
    r"\bPlayers\b": "Players.features(names)",
    r"\bGame\b": "a game such as MaskedModel(…) or ValueTable(values)",
    r"\bTask\b": "a task such as Task(model, x)",
    r"Sequence\[int]": "a list of whole numbers",
    r"Sequence\[float]": "a list of numbers",
    r"(Sequence|Iterable)\[str]": "a list of texts",
    r"\bbool\b": "True or False",
    r"\bint\b": "a whole number",
    r"\bfloat\b": "a number",
    r"\bstr\b": "text",
    "Path": "a path",
    r"\bRegion\b": "a list of players",
    r"\b(Categorical|Columns)\b": "a list of columns",
    r"\bAbsence\b": "an absence",
    r"\bAbsences\b": "a list or a mapping of absences",
    r"\bBounds\b": "'range' or a number or two numbers (low, high)",
    r" \| ": " or ",
}


def checked(public: Public) -> Public:
    """Check the arguments of a public function, or of the public methods of a class.

    A call that fails because of an argument of the wrong type raises an `AbsentiaError` that names the argument.
    """
    if not inspect.isclass(public):
        return typing.cast(Public, _checked_function(public))
    for name, method in list(vars(public).items()):
        is_public = not name.startswith("_") or name in ("__init__", "__call__")
        if not is_public:
            continue
        if isinstance(method, staticmethod | classmethod):
            setattr(public, name, type(method)(_checked_function(method.__func__)))
        elif inspect.isfunction(method):
            setattr(public, name, _checked_function(method))
    return typing.cast(Public, public)


def _checked_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that converts numbers, and that names the wrong argument if a call fails."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        # Most calls pass no number that may need a conversion: these cost nothing more.
        if any(isinstance(value, _MAY_CONVERT) for value in (*args, *kwargs.values())):
            args, kwargs = _with_numbers(function, args, kwargs)
        try:
            return function(*args, **kwargs)
        except AbsentiaError:
            raise
        except Exception as error:
            explained = _explain_failure(function, args, kwargs, error)
            if explained is None:
                raise
            raise explained from error

    return call


@functools.cache
def _hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the types of the arguments in order; Any for those that only type checkers know."""
    plain = inspect.unwrap(function)
    hints = dict.fromkeys(inspect.signature(plain).parameters, Any)
    for name in hints:
        text = plain.__annotations__.get(name, "Any")
        try:
            hints[name] = eval(text, plain.__globals__) if isinstance(text, str) else text
        except (NameError, SyntaxError, TypeError):  # a name that is imported for type checkers alone
            continue
    return hints


def _with_numbers(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a call, with its numbers in the types that the function's hints name."""
    hints = _hints_of(function)
    converted = [_as_number(name, hint, value) for (name, hint), value in zip(hints.items(), args, strict=False)]
    converted_kwargs = {name: _as_number(name, hints.get(name), value) for name, value in kwargs.items()}
    return (*converted, *args[len(converted) :]), converted_kwargs


def _as_number(name: str, hint: Any, value: Any) -> Any:
    """Convert a number to Python's own type, or raise an error for a fraction where a whole number is needed."""
    if not isinstance(value, _MAY_CONVERT):
        return value
    kinds = (hint, *typing.get_args(hint))
    wants_float = float in kinds
    wants_int = int in kinds
    if isinstance(value, np.generic) and (wants_int or wants_float):
        value = value.item()
    if not isinstance(value, float) or wants_float or not wants_int:
        return value
    if not value.is_integer():
        raise wrong(name, "be a whole number", value)
    return int(value)


def _explain_failure(
    function: Callable[..., Any], args: Any, kwargs: dict[str, Any], error: Exception
) -> AbsentiaError | None:
    """Return the error for the argument that made a call fail, or for a lack of memory; None for other failures."""
    values = [*zip(_hints_of(function), args, strict=False), *kwargs.items()]
    wrong_type = _wrong_type(function, values)
    if wrong_type is not None:
        return wrong_type
    for name, value in values:
        if _is_odd_tensor(value):
            return wrong(name, "hold its numbers in memory, all of them", _shown(value))
        if _overflowed(error) and isinstance(value, int) and abs(value) >= _TOO_LARGE:
            return wrong(name, "lie within ±2^63", _shown(value))
    if lacks_memory(error):
        allocation = re.search(r"allocate (\d+) bytes", str(error))
        size_text = f": {int(allocation[1]) / 2**30:,.1f} GiB" if allocation else ""
        return AbsentiaError(
            f"This takes more memory than there is{size_text}. Use smaller inputs, or fewer at a time."
        )
    return None


def _wrong_type(function: Callable[..., Any], values: list[tuple[str, Any]]) -> AbsentiaError | None:
    """Return the error for the first argument whose value does not fit its type hint; None if all fit."""
    hints = _hints_of(function)
    hint_texts = inspect.unwrap(function).__annotations__
    fitting = set(_names_that_fit(values, hints))
    for name, value in values:
        # Python counts True and False as whole numbers, but a caller rarely intends that.
        is_truth_for_number = isinstance(value, bool) and _takes_int_alone(hints.get(name))
        if name not in fitting or is_truth_for_number:
            return wrong(name, f"be {_in_words(hint_texts[name])}", _shown(value))
    return None


def _takes_int_alone(hint: Any) -> bool:
    """Return whether a hint is or offers whole numbers, but not True and False."""
    kinds = (hint, *typing.get_args(hint))
    return int in kinds and bool not in kinds


def _overflowed(error: Exception) -> bool:
    """Return whether a call failed because of a number that is too large; torch raises a ValueError or TypeError."""
    return isinstance(error, OverflowError) or "Overflow when unpacking" in str(error)


def _names_that_fit(values: list[tuple[str, Any]], hints: dict[str, Any]) -> Iterator[str]:
    """Yield the names of the arguments whose values fit their hints."""
    from beartype import BeartypeConf  # imported here, because most calls do not fail
    from beartype.door import is_bearable

    whole_numbers_are_floats = BeartypeConf(is_pep484_tower=True)
    state = random.getstate()  # restored below: a failed call must not change what the user draws next
    try:
        for name, value in values:
            hint = hints.get(name, Any)
            try:
                if all(is_bearable(value, hint, conf=whole_numbers_are_floats) for _ in range(_LOOKS)):
                    yield name
            except TypeError:  # beartype asks arrays without axes for their length
                continue
    finally:
        random.setstate(state)


def _is_odd_tensor(value: Any) -> bool:
    """Return whether a tensor does not hold its numbers in memory one by one."""
    return isinstance(value, Tensor) and (value.layout is not torch.strided or value.is_meta)


def _in_words(hint: Any) -> str:
    """Return a type hint, or its text, as users say it."""
    if not isinstance(hint, str):
        hint = inspect.formatannotation(hint)
    for pattern, words in _WORDS_OF_HINTS.items():
        hint = re.sub(pattern, words, hint)
    return str(hint)


def _shown(value: Any) -> str:
    """Return a value as a message shows it: its repr, or its type if the repr is long."""
    text = repr(value)
    if len(text) <= _LETTERS_SHOWN and "\n" not in text:
        return text
    return f"a value of type {type(value).__name__}"
