"""The one family of errors, and the one sentence that each of them says."""


class AbsentiaError(ValueError):
    """Something that the caller can mend: the message says what, and what to do next.

    >>> raise AbsentiaError("x must be finite. Got NaN instead.")
    Traceback (most recent call last):
    ...
    absentia.errors.AbsentiaError: x must be finite. Got NaN instead.
    """


def wrong(argument: str, must: str, got: object, then: str = "") -> AbsentiaError:
    """Word an error the one way that errors are worded: what must hold, what came, what to do.

    >>> str(wrong("sigma", "be positive", -1.0))
    'sigma must be positive. Got -1.0 instead.'
    >>> str(wrong("x", "be a batch", "one sample", "Pass x[None]."))
    'x must be a batch. Got one sample instead. Pass x[None].'
    """
    return AbsentiaError(f"{argument} must {must}. Got {got} instead." + (f" {then}" if then else ""))
