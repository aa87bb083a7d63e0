"""Trial runs of a loaded model, which show what it accepts: tensors or arrays, tokens, and which categories."""

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor, nn

from absentia.cli.file_checks import reading
from absentia.cli.model_files import is_estimator
from absentia.interop import EncodedTable, from_estimator
from absentia.models.adapters import as_model, placement
from absentia.models.arrays import from_numpy, log_probabilities
from absentia.models.encoded_inputs import check_categories
from absentia.models.model import Model
from absentia.runtime.gaps_in_rows import check_gaps
from absentia.runtime.modes import evaluation_mode
from absentia.runtime.row_count import RowCount

# What to do if the model fails on the data.
RUN_HELP = "Name other columns with --target and --drop. Export a program with dynamic_shapes for any number of rows."


def fit_model(
    loaded: Any,
    x: Tensor,
    table: EncodedTable | None = None,
    probabilities: bool = False,
    columns: Sequence[str] = (),
) -> tuple[Model, bool]:
    """Make a loaded model run on rows, which a table decodes, and return whether it takes tokens.

    ``columns`` are the names of the columns, for an error about missing values that the model does not take.
    """
    model = _runnable(loaded, x, table, probabilities)

    def place(row: int, entry: int) -> str:
        return f"column {columns[entry]!r}, row {row}" if columns else f"row {row}, entry {entry}"

    check_gaps(model, x, "data", place, RowCount())
    return model, _takes_tokens(model, x)


def _runnable(loaded: Any, x: Tensor, table: EncodedTable | None, probabilities: bool) -> Model:
    """Return a callable on torch rows for an estimator, a network, or a function of tensors or arrays."""
    if is_estimator(loaded):
        if table is None:
            return as_model(loaded)
        model = from_estimator(loaded, table)
        check_categories(model, table, x, "data")
        return model
    if not isinstance(loaded, nn.Module) and not _takes_tensors(loaded, x):
        return from_numpy(loaded, probabilities=probabilities)
    return _in_logarithms(loaded) if probabilities else as_model(loaded)


def _try(model: Callable[[Any], Any], rows: Tensor) -> Any:
    """Return the output of a model, or the error that it raises."""
    try:
        return model(rows)
    except Exception as error:
        return error


def _in_logarithms(model: Model) -> Model:
    """Convert a model that returns probabilities to one that returns logits."""
    if not isinstance(model, nn.Module):
        return lambda rows: log_probabilities(model(rows))
    model.register_forward_hook(lambda _module, _inputs, output: log_probabilities(output))
    return model


def _takes_tensors(model: Callable[[Any], Any], x: Tensor) -> bool:
    """Return whether a callable uses torch; numpy rejects a tensor that requires a gradient."""
    rows = x[[0, -1]]
    if rows.is_floating_point():
        rows = rows.clone().requires_grad_().clone()  # not a leaf, which can't be changed in place
    return isinstance(_try(model, rows), Tensor)  # if not, the callable is tried with arrays, which shows errors


def _takes_tokens(model: Model, x: Tensor) -> bool:
    """Run the model on two and on three rows. Return whether it takes integers only: tokens."""
    device, dtype = placement(model, x)
    tokens = False
    for rows in (x[[0, -1]], x[[0, -1, 0]]):
        must = f"run on any number of rows of the data, here of shape {tuple(rows.shape)}"
        with evaluation_mode(model), reading("model", must, then=RUN_HELP):
            try:
                model(rows.to(device, dtype))
            except Exception:
                if x.is_floating_point():
                    raise
                model(rows.to(device).long())
                tokens = True
    return tokens
