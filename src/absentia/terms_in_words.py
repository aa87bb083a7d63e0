"""Words for terms: their basis in headings, what a Walsh term means, and how much of the variation terms explain."""

from __future__ import annotations

import math
from collections.abc import Sequence

from absentia.determined import WHY_NOT_DETERMINED, with_marks
from absentia.text import align, count_of, fold, written

HARSANYI = "Harsanyi"
WALSH = "Walsh"
# The bases whose terms add up to the values of coalitions.
BASES_OF_VALUES = (HARSANYI, WALSH)

# A standard error of less than this, in percent, is not shown.
_SMALLEST_ERROR = 1e-3

WALSH_MEANING = (
    "A Walsh term adds its effect if an even number of its players is absent, and subtracts it if an odd number is."
)


def name_with_basis(name: str, basis: str, is_fitted: bool) -> str:
    """Add the basis to the name of interactions, unless they are the exact effects that the name always stands for.

    Examples
    --------
    >>> name_with_basis("strongest interactions", "Walsh", is_fitted=False)
    'strongest interactions (Walsh)'
    """
    if basis == HARSANYI and not is_fitted:
        return name
    return f"{name} ({basis})"


def share_explained(interactions: int, fidelity: float, error: float) -> str:
    """Say how much of the variation of values some interactions account for; an empty text if that is unknown.

    Examples
    --------
    >>> share_explained(40, 0.957, 0.0098)
    'These 40 interactions account for 96 % ± 1 % of the variation.'
    """
    if math.isnan(fidelity):
        return ""
    subject = f"These {count_of(interactions, 'interaction')} account"
    if interactions == 1:
        subject = "This interaction accounts"
    if fidelity <= 0:
        return f"{subject} for none of the variation: R² is {written(fidelity, 2)}."
    return f"{subject} for {_percent_with_error(fidelity, error)} of the variation."


def printed_terms(
    heading: str,
    rows: Sequence[tuple[str, ...]],
    determined: Sequence[bool],
    remarks: Sequence[str],
    notes: Sequence[str],
) -> str:
    """Return the text of terms: a heading, the names and effects of the strongest, and what to know about them."""
    lines = [f"{heading}:", *align(with_marks(rows, determined), 2)]
    if not all(determined):
        lines.append(f"  {WHY_NOT_DETERMINED}")
    lines += [fold(f"  {remark}") for remark in remarks]
    lines += [fold(f"  Note: {note}") for note in notes]
    return "\n".join(lines)


def _percent_with_error(share: float, error: float) -> str:
    """Write a share in percent, to the first digit of its standard error if that is known."""
    percent = 100 * share
    error_in_percent = 100 * error
    if not error_in_percent >= _SMALLEST_ERROR:
        text = written(percent, 3)
        return "more than 99.9 %" if text == "100" and share < 1 else f"{text} %"
    first_digit = -math.floor(math.log10(error_in_percent))
    error_in_percent = round(error_in_percent, first_digit)  # may carry: 0.98 becomes 1.0
    decimals = max(0, -math.floor(math.log10(error_in_percent)))
    return f"{percent:.{decimals}f} % ± {error_in_percent:.{decimals}f} %"
