"""Checks and conversion of the data that users pass, and its statistics."""

from absentia.data.bounds import check_number
from absentia.data.categories import Categorical, column_groups, most_frequent
from absentia.data.classes import (
    CheckedClasses,
    Classes,
    class_numbers,
    each_class,
    holds_text,
    order_unknown,
    read_classes,
)
from absentia.data.frames import has_categories, is_frame, is_numeric
from absentia.data.gaps import (
    has_gaps,
    known_deviation,
    known_least,
    known_mean,
    known_median,
    known_mode,
    known_most,
    known_quantiles,
)
from absentia.data.quantiles import QUANTILES, data_quantiles
from absentia.data.ranges import DataRange, data_range, white_noise
from absentia.data.scales import least_and_most, mean_and_deviation
from absentia.data.seeds import seeded, weights_drawn_from
from absentia.data.slices import blocks, count_blocks
from absentia.data.tensors import (
    Array,
    CheckedRows,
    Rows,
    Table,
    as_in_lightgbm,
    as_tensor,
    check_columns,
    check_numbers,
    check_rows,
    read_rows,
)

__all__ = [
    "QUANTILES",
    "Array",
    "Categorical",
    "CheckedClasses",
    "CheckedRows",
    "Classes",
    "DataRange",
    "Rows",
    "Table",
    "as_in_lightgbm",
    "as_tensor",
    "blocks",
    "check_columns",
    "check_number",
    "check_numbers",
    "check_rows",
    "class_numbers",
    "column_groups",
    "count_blocks",
    "data_quantiles",
    "data_range",
    "each_class",
    "has_categories",
    "has_gaps",
    "holds_text",
    "is_frame",
    "is_numeric",
    "known_deviation",
    "known_least",
    "known_mean",
    "known_median",
    "known_mode",
    "known_most",
    "known_quantiles",
    "least_and_most",
    "mean_and_deviation",
    "most_frequent",
    "order_unknown",
    "read_classes",
    "read_rows",
    "seeded",
    "weights_drawn_from",
    "white_noise",
]
