"""Data that users pass, checked and converted, and what is measured of it."""

from absentia.data.bounds import check_number
from absentia.data.categories import Categorical, column_groups, most_frequent
from absentia.data.classes import Classes, class_numbers, each_class, holds_text, order_unknown
from absentia.data.quantiles import QUANTILES, data_quantiles
from absentia.data.ranges import DataRange, data_range, white_noise
from absentia.data.scales import least_and_most, mean_and_deviation
from absentia.data.seeds import seeded
from absentia.data.slices import blocks
from absentia.data.tensors import Array, Rows, Table, as_tensor, check_columns, check_rows

__all__ = [
    "QUANTILES",
    "Array",
    "Categorical",
    "Classes",
    "DataRange",
    "Rows",
    "Table",
    "as_tensor",
    "blocks",
    "check_columns",
    "check_number",
    "check_rows",
    "class_numbers",
    "column_groups",
    "data_quantiles",
    "data_range",
    "each_class",
    "holds_text",
    "least_and_most",
    "mean_and_deviation",
    "most_frequent",
    "order_unknown",
    "seeded",
    "white_noise",
]
