"""Any model as a function from rows to outputs: torch, numpy, estimators; modes, devices, batches, cost, workers."""

from __future__ import annotations

import ctypes
import gc
import hashlib
import math
import os
import pickle
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import chain
from types import FunctionType, ModuleType
from typing import Any, TypeAlias

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.overrides import TorchFunctionMode

from absentia.boosters import find_margins
from absentia.data import Rows, check_columns, lacks_memory
from absentia.errors import AbsentiaError, require, wrong

Model: TypeAlias = Callable[[Tensor], Tensor]
Outputs: TypeAlias = Float[Tensor, "rows *output"]

# On a CPU the fastest batch is one whose activations stay in cache, far below what memory would hold.
CPU_MEMORY = 4 * 2**20
# A call of a numpy model has a fixed cost that only larger batches make up for.
NUMPY_MEMORY = 64 * 2**20
# The assumed size of the activations, as a multiple of the input, where the layers of a model cannot be seen.
_ASSUMED_EXPANSION = 16
# Modules that a function or an object runs are searched among this many things, the nearest ones first.
_MOST_SEARCHED = 256
_ATTEMPTS = 3  # at items whose workers die
# GNU's M_TRIM_THRESHOLD and M_MMAP_THRESHOLD: bytes to keep, and the size from which none are (its default too).
_KEEP_MEMORY, _USUAL_SIZE = {-1: 2**28, -3: 2**25}, 2**17
_HOLD_NO_MODULE = (type(None), str, int, float, Tensor, np.ndarray, torch.dtype, torch.device, ModuleType, type)
# The last operations of models that return probabilities, by the names of their gradients; and operations after them
# that may leave them probabilities, such as the mean of an ensemble.
_PROBABILITY_ENDS = {"Sigmoid", "Softmax", "SafeSoftmax", "LogSigmoid", "LogSoftmax"}
_ENDS_AFTER_THEM = {
    "View", "UnsafeView", "ReshapeAlias", "Squeeze", "Unsqueeze", "Select", "Slice", "Clamp", "Alias", "Clone", "T",
    "ToCopy", "Index", "Gather", "Stack", "Cat", "Mean", "Add", "Sub", "Rsub", "Mul", "Div", "Sum", "Max", "Amax",
    "Min", "Amin", "Exp",
}  # fmt: skip
# What a row costs beside the operations of its layers, in the same unit: fixed, and for each entry.
_PER_ROW, _PER_ENTRY = 4_000.0, 50.0
# The types that are doubled to measure rounding errors, and the most numbers of a tensor that is: 512 MiB of doubles.
_LOW, _MOST_DOUBLED = (torch.float32, torch.float16, torch.bfloat16), 2**26
# The assumed operations of a row where they cannot be counted: about those of 100 trees.
_UNKNOWN = 100_000.0
_ROUNDED = 1e-4  # by which a probability may lie beyond 0 and 1
_LONG_WORK = 0.25  # seconds, after which work is timed only once with each number of threads
# The share of the time that is left, beyond which the quicker number of threads is not found out.
_SHARE_FOR_THREADS = 0.1
# Under a time limit the first batch has this many rows, ...
_FIRST_ROWS = 16
# ... and the next one this many times as many, as long as a batch takes less than this share of the time.
_GROWTH_OF_BATCHES = 4
_SHARE_OF_A_BATCH = 0.03
# A limit in which nothing could be done should be at least this many times as long.
_LONGER = 1.5
# Margins of boosters are compared with probabilities on this many rows. Beyond these bounds probabilities in single
# precision say little of the log-odds; within them they tell log-odds by this much or better.
_ROWS_COMPARED = 256
_LEAST_COMPARED = 1e-3
_MOST_LOG_ODDS_APART = 1e-3
_MARGINS_DIFFER = "margins differ from predict_proba: probabilities are read"


@dataclass(frozen=True)
class NumpyModel:
    """A numpy callable as a torch one; made by `from_numpy` or `wrap_estimator`."""

    predict: Callable[[np.ndarray], np.ndarray]
    probabilities: bool | None = None
    labels: tuple[Any, ...] = ()  # the classes in the order of the outputs, where the model knows them
    regression: bool = False  # whether outputs are numbers that are no logits
    least: float = 0.0  # below the least positive probability that the model can return, where it is known
    columns: tuple[str, ...] = ()  # of the fit, in their order
    scores: bool = False  # whether outputs are scores of classes that are no log-odds, as those of an SVM
    margins: bool = False  # whether outputs are log-odds or logits that a booster computes before its probabilities
    fallback: NumpyModel | None = None  # the same model by its probabilities, to compare margins with
    note: str = ""  # on how the model is read, for the record
    categorical: tuple[int, ...] = ()  # columns of categories, where the model decodes the rows of a table

    def __call__(self, rows: Rows, moved: bool = False) -> Outputs:
        """Predict, ``moved`` by rounding errors if wanted; convert probabilities to their logarithms: logits."""
        given = self.predict(rows.detach().cpu().numpy())
        answer = np.asarray(given)
        if np.ma.is_masked(given) or answer.dtype.kind == "c":
            got = "a masked array" if np.ma.is_masked(given) else "complex numbers"
            raise wrong("model", "return real numbers, none of them missing", got)
        if answer.ndim == 0 or len(answer) != len(rows):
            raise wrong("model", f"return one row for each of the {len(rows)} input rows", f"shape {answer.shape}")
        answer = answer if answer.dtype in (np.float32, np.float16) else answer.astype(np.float64)
        kind, units = np.finfo(answer.dtype), 4 if moved else 1  # probabilities of 0 and 1 move by more than one
        answer = np.nextafter(answer, answer.dtype.type(0.5)) if moved else answer
        output = torch.from_numpy(np.ascontiguousarray(answer)).to(rows.device)
        if not self.probabilities:
            return output
        if bool((output < -_ROUNDED).any()) or bool((output > 1 + _ROUNDED).any()):
            got = f"numbers from {float(output.min()):g} to {float(output.max()):g}"
            raise wrong("model", "return probabilities from 0 to 1, as probabilities=True says", got)
        # Without a bound of its own, a model's probabilities are bounded by what their type can tell from 0 and 1.
        least, above = (self.least, self.least) if self.least else (float(kind.tiny), float(kind.epsneg))
        return log_probabilities(output.double().clamp(units * least, 1 - units * above)).to(output.dtype)


def from_numpy(predict: Callable[[np.ndarray], np.ndarray], *, probabilities: bool | None = None) -> NumpyModel:
    """Make a model of any numpy callable: a service, a rule, ``predict_proba`` of an estimator.

    Parameters
    ----------
    predict : callable
        Takes an array of shape (rows, …) and returns one of shape (rows,) or (rows, outputs).
    probabilities : bool, optional
        Whether ``predict`` returns probabilities, of shape (rows, classes), or (rows,) for class 1. Their logarithms
        are then the logits that the readouts expect. A probability of exactly 0 has no logarithm: it is replaced by
        the least number of its type, 2e-308 for double. Use ``probabilities=False`` and the readout `Output` to
        explain the probabilities themselves.

    Examples
    --------
    >>> model = from_numpy(lambda rows: rows.sum(1))
    >>> model(torch.ones(2, 3))
    tensor([3., 3.])
    """
    if not callable(predict):
        raise wrong("predict", "be a callable such as estimator.predict_proba", type(predict).__name__)
    return NumpyModel(predict, probabilities)


def as_model(model: Any) -> Model:
    """Return a model as a callable on torch rows; wrap estimators and boosters."""
    if isinstance(model, nn.Module | NumpyModel):
        return model
    owner = getattr(model, "__self__", None)
    if getattr(model, "__name__", "") == "predict_proba" and not isinstance(owner, nn.Module) and owner is not None:
        model = owner
    predicts = hasattr(model, "predict") and not callable(model)
    if predicts or hasattr(model, "predict_proba") or hasattr(model, "decision_function"):
        return wrap_estimator(model)
    if not callable(model):
        then = "Wrap a numpy model with from_numpy(predict)."
        raise wrong("model", "be an nn.Module, an estimator, or a callable on torch rows", type(model).__name__, then)
    return model


def wrap_estimator(
    estimator: Any, decode: Callable[[np.ndarray], Any] | None = None, *, probabilities: bool = True
) -> NumpyModel:
    """Make a model of a fitted estimator or booster; ``decode`` converts rows of numbers to what it takes.

    Boosters are read by their margins, which `confirm_margins` compares with probabilities, unless these are wanted.
    """
    last = _last_step(estimator)
    names = getattr(estimator, "feature_names_in_", None)
    columns = () if names is None else tuple(str(name) for name in names)
    features = getattr(estimator, "n_features_in_", None)

    def run(predict: Callable[[Any], Any], rows: np.ndarray) -> np.ndarray:
        if decode is None and features is not None and rows.shape[1:] != (features,):
            raise wrong("x", f"have the {features} columns of the fit", f"shape {rows.shape[1:]}")
        given: Any = rows if decode is None else decode(rows)
        if columns:
            frame = require("pandas", "sklearn").DataFrame
            given = frame(rows, columns=columns) if decode is None else given[list(columns)]
        answer = predict(given)
        if isinstance(answer, list):
            raise wrong("estimator", "have one output", f"{len(answer)} outputs", "Explain one estimator for each.")
        return np.asarray(answer)

    labels = tuple(np.asarray(getattr(estimator, "classes_", ())).tolist())
    known = columns if decode is None else ()
    margins = find_margins(estimator) if probabilities else None
    if margins is not None and margins.scores:
        return NumpyModel(partial(run, margins), False, labels, columns=known, scores=True)
    if margins is not None and not margins.predicts_probabilities:
        return NumpyModel(partial(run, margins), False, labels, columns=known, margins=True)
    predict, gives = _prediction(estimator, last)
    least = _least_probability(last)
    least /= 1 + 2 * least  # the least share after one more vote for each side: no positive probability is changed
    by_prediction = NumpyModel(
        partial(run, predict),
        probabilities=probabilities and gives == "probabilities",
        labels=labels,
        regression=gives == "numbers",
        least=least,
        columns=known,
        scores=gives == "scores",
    )
    if margins is None:
        return by_prediction
    return NumpyModel(partial(run, margins), False, labels, columns=known, margins=True, fallback=by_prediction)


def _last_step(estimator: Any) -> Any:
    """Return the last step of a pipeline, which may be a pipeline itself; any other estimator as it is."""
    while hasattr(estimator, "steps"):
        estimator = estimator.steps[-1][1]
    return estimator


def confirm_margins(model: Model, x: Rows, limit: TimeLimit | None = None) -> Model:
    """Return a model whose margins agree with its probabilities on the first rows; else read it by probabilities.

    Margins disagree if a subclass predicts something else than its booster, or if the factor of its loss is unknown.
    """
    if not isinstance(model, NumpyModel) or model.fallback is None:
        return model
    limit = limit or TimeLimit()
    by_margins = try_rows(model, x[:_ROWS_COMPARED].clone())[0]
    limit.check()
    by_probabilities = try_rows(model.fallback, x[:_ROWS_COMPARED].clone())[0]
    limit.check()
    if by_margins.shape == by_probabilities.shape:
        apart = (_compared_log_odds(by_margins) - _compared_log_odds(by_probabilities)).abs()
        if bool((apart <= _MOST_LOG_ODDS_APART).all()):
            return model
    return replace(model.fallback, note=_MARGINS_DIFFER)


def _compared_log_odds(output: Outputs) -> Tensor:
    """Return the log-odds of all classes, bounded to where probabilities in single precision tell them."""
    logits = output.double()
    several = logits.ndim == 2 and logits.shape[1] > 1
    probabilities = logits.softmax(1) if several else logits.sigmoid()
    return probabilities.clamp(_LEAST_COMPARED, 1 - _LEAST_COMPARED).logit()


def check_fit(model: Model, columns: Any) -> None:
    """Raise an error for columns of a DataFrame that are not those of the model's fit, in their order."""
    check_columns("x", columns, getattr(model, "columns", None))


def _prediction(estimator: Any, last: Any) -> tuple[Callable[[Any], Any], str]:
    """Return the method of an estimator that says most, and what it returns: probabilities, scores or numbers."""
    if hasattr(estimator, "predict_proba"):
        return estimator.predict_proba, "probabilities"
    if hasattr(estimator, "decision_function"):
        if getattr(last, "decision_function_shape", "") == "ovo" and len(estimator.classes_) > 2:
            ovr = "Use decision_function_shape='ovr'."
            raise wrong("estimator", "have one score for each class", "one for each pair of classes", ovr)
        return estimator.decision_function, "scores"
    predict = getattr(estimator, "inplace_predict", getattr(estimator, "predict", None))
    if predict is not None and not hasattr(estimator, "classes_"):
        margins = find_margins(estimator)
        if margins is None:
            return predict, "numbers"
        if margins.scores or not margins.predicts_probabilities:
            return predict, "scores"
        return predict, "probabilities"
    got = "one that only predicts classes" if predict is not None else type(estimator).__name__
    raise wrong("estimator", "have predict_proba, decision_function, or be a regressor with predict", got)


def _least_probability(estimator: Any) -> float:
    """Return the least positive probability of neighbours, trees and forests, which are shares; else 0."""
    if getattr(estimator, "weights", None) == "uniform" and getattr(estimator, "n_neighbors", None):
        return 1 / estimator.n_neighbors
    trees = np.ravel(getattr(estimator, "estimators_", [estimator])).tolist()
    voting = all(hasattr(tree, "tree_") and hasattr(tree, "classes_") for tree in trees)
    weighted = ("estimator_weights_", "final_estimator_", "weights")  # by boosting, by stacking, by the user
    if not trees or not voting or any(getattr(estimator, name, None) is not None for name in weighted):
        return 0.0
    leaves = [tree.tree_.value[tree.tree_.children_left < 0, 0] for tree in trees]
    shares = np.concatenate([(one / one.sum(1, keepdims=True)).ravel() for one in leaves])
    return float(shares[shares > 0].min()) / len(trees)


def labels_of(model: Model) -> tuple[Any, ...]:
    """Return the classes that a model knows, in the order of its outputs; none for most models."""
    return model.labels if isinstance(model, NumpyModel) else tuple(getattr(model, "class_names", ()))


def are_probabilities(output: Outputs) -> bool:
    """Return whether outputs are rows of probabilities that add up to 1."""
    several = output.ndim == 2 and output.shape[1] > 1 and bool((output >= 0).all())
    return several and torch.allclose(output.sum(1), torch.ones_like(output[:, 0]), atol=1e-4)


def returns_probabilities(model: Model, x: Rows, output: Tensor, limit: TimeLimit | None = None) -> bool:
    """Return whether outputs are probabilities: by the last operations of the model, or, of one column, by values."""
    known = isinstance(model, NumpyModel) and (model.probabilities is not None or model.regression)
    if known or not bool(((output >= 0) & (output <= 1)).all()):
        return False
    rows, steps, ends = x[[0, -1]].clone(), list[Any](), set[str]()
    if limit is not None:
        limit.check()
    with suppress(RuntimeError), evaluation_mode(model, gradient=True), torch.enable_grad():  # some refuse a gradient
        steps = [read_output(model(rows.requires_grad_() if rows.is_floating_point() else rows))[0].grad_fn]
    for step in filter(None, steps):  # which grow
        name = step.name().partition("Backward")[0]
        if name in _ENDS_AFTER_THEM:
            steps += [before for before, _ in step.next_functions if before not in steps]
        else:
            ends.add(name)
    if ends and "CompiledFunction" not in ends:
        return ends <= _PROBABILITY_ENDS
    if output.ndim > 1 and output.shape[1] > 1:
        return False
    return bool(((run_rows(model, x, limit) - 0.5).abs() <= 0.5).all())


def log_probabilities(output: Outputs) -> Outputs:
    """Return the logarithms of several probabilities, or the log-odds of a single one, that of class 1."""
    return torch.logit(output) if output.ndim == 1 or output.shape[1] == 1 else output.log()


def module_of(model: Model) -> nn.Module | None:
    """Return the module behind a model: itself, or the owner of a bound method."""
    owner = getattr(model, "__self__", model)
    return owner if isinstance(owner, nn.Module) else None


def placement(model: Model, x: Tensor) -> tuple[torch.device, torch.dtype]:
    """Return the device and the floating dtype that the model works in."""
    module = module_of(model)
    tensors = () if module is None else chain(module.parameters(), module.buffers())
    weights = [one for one in tensors if one.is_floating_point()]
    if weights:  # the most of them, because a single number may have a type of its own
        largest = max(weights, key=Tensor.numel)
        return largest.device, largest.dtype
    if x.is_floating_point():
        return x.device, x.dtype
    # Integers that the usual type would round, such as times in seconds, get a type that holds them.
    exact = not isinstance(model, NumpyModel) and bool((x.double().abs() <= 2**24).all())
    return x.device, torch.get_default_dtype() if exact else torch.float64


def modules_behind(model: Any) -> list[nn.Module]:
    """Return the modules at hand: a model itself, or what a function names, a method belongs to, an object holds."""
    found, things, known = dict[nn.Module, None](), [model], {id(model)}
    for thing in things:  # which grows
        held = [] if isinstance(thing, nn.Module) else gc.get_referents(thing)
        if isinstance(thing, nn.Module):
            found |= dict.fromkeys(thing.modules())
        elif isinstance(thing, FunctionType):  # rather than all variables of its file
            named = [thing.__globals__.get(name) for name in thing.__code__.co_names]
            held = [thing.__closure__, thing.__defaults__, thing.__kwdefaults__, *named]
        for one in held:
            if not isinstance(one, _HOLD_NO_MODULE) and id(one) not in known and len(things) < _MOST_SEARCHED:
                known.add(id(one))
                things.append(one)
    return list(found)


# Modules and parameters whose flag is off while they are evaluated, and by how many threads.
_OFF: dict[Any, int] = {}
# The number of torch's threads before the first call that changes it, once for each such call.
_THREADS: list[int] = []
_LOCK = threading.Lock()


@contextmanager
def evaluation_mode(model: Model, gradient: bool = False) -> Iterator[None]:
    """Run in evaluation mode, with a graph of the inputs alone if ``gradient``; the last thread restores flags."""
    known, off, thread = set[nn.Module](), list[tuple[Any, str]](), threading.get_ident()

    def switch_off(called: nn.Module, _inputs: object = None) -> None:
        if torch.compiler.is_compiling() or called in known or threading.get_ident() != thread:
            return  # what is compiled does not run; the order is that of the time that a look takes
        parts = [part for part in called.modules() if part not in known]
        known.update(parts)
        if any(map(_is_compiled, parts)):
            hook.remove()
        weights = [one for part in parts for one in part.parameters(recurse=False)] if gradient else []
        if any(one.is_inference() for one in weights):
            raise wrong("model", "be made outside of torch.inference_mode to learn by its gradient", "its parameters")
        with _LOCK:
            for thing in (*parts, *weights):
                flag = "training" if isinstance(thing, nn.Module) else "requires_grad"
                if thing in _OFF or getattr(thing, flag, False):  # frozen TorchScript has no mode
                    _OFF[thing] = _OFF.get(thing, 0) + 1
                    off.append((thing, flag))
                    setattr(thing, flag, False)

    # Modules that are not found now are switched before they run. Two threads might get one number of a hook.
    with _LOCK:
        hook = register_module_forward_pre_hook(switch_off)
    try:
        for part in (found := modules_behind(model)):
            switch_off(part)
        own = module_of(model) is None or not all(type(part).__module__.startswith("torch.") for part in found)
        if _is_compiled(model) or not own:  # torch's own modules call none but those within
            hook.remove()
        with nullcontext() if gradient else torch.no_grad():
            yield
    finally:
        hook.remove()
        with _LOCK:
            for thing, flag in off:
                _OFF[thing] -= 1
                if not _OFF[thing]:
                    del _OFF[thing]
                    setattr(thing, flag, True)


def _is_compiled(thing: Any) -> bool:
    """Return whether torch.compile made a function or a module: it would compile it again for every hook."""
    made = getattr(thing, "_torchdynamo_orig_callable", None)
    return made is not None or getattr(thing, "_compiled_call_impl", None) is not None


def layers_of(model: Model) -> list[nn.Module]:
    """Return the modules of a model that can be watched; none of a function, of TorchScript or of torch.compile."""
    module = module_of(model)
    parts = [] if module is None or type(module).__name__ == "OptimizedModule" else module.modules()
    return [part for part in parts if not isinstance(part, torch.jit.ScriptModule)]


def layer_output(model: Model, layer: str) -> Model:
    """Return a model that returns the output of a named layer."""
    module, known = module_of(model), set(layers_of(model))
    if module is None or not known:
        raise wrong("model", "be an nn.Module for the features of a layer", type(model).__name__)
    layers = {name: part for name, part in module.named_modules() if name and part in known}
    if layer not in layers:
        raise wrong("layer", f"be one of {', '.join(layers)}", repr(layer))

    def run(rows: Tensor) -> Tensor:
        caught: list[Tensor] = []
        run_watched(model, rows, [layers[layer]], lambda _part, _inputs, output: caught.append(output.clone()))
        if not caught:
            raise AbsentiaError(f"The layer {layer!r} takes no part in the model's forward pass. Name another one.")
        return caught[-1]

    return run


def see(thread: int, watch: Callable[..., None], *call: Any) -> None:
    """Look at a layer, its inputs and its output, if the thread that set the hook runs the layer."""
    if threading.get_ident() == thread:
        watch(*call)


def run_watched(model: Model, rows: Tensor, parts: Iterable[nn.Module], watch: Callable[..., None]) -> Any:
    """Run a model while a hook sees some of its modules, their inputs and their outputs."""
    with ExitStack() as hooks:
        for part in parts:
            hooks.enter_context(part.register_forward_hook(partial(see, threading.get_ident(), watch)))
        return model(rows)


def try_rows(model: Model, rows: Rows) -> tuple[Outputs, int, str | int | None]:
    """Run a few rows; return the output, the most bytes of a layer for a row, and where the output was found."""
    leaves = [part for part in layers_of(model) if not list(part.children())]
    sizes = [rows.nbytes * (1 if leaves else _ASSUMED_EXPANSION)]

    def watch(_part: nn.Module, inputs: tuple[object, ...], output: object) -> None:
        sizes.append(sum(one.nbytes for one in (*inputs, output) if isinstance(one, Tensor)))

    try:
        output, key = read_output(run_watched(model, rows, leaves, watch))
    except AbsentiaError:
        raise
    except Exception as error:
        got = f"{rows.dtype} samples of shape {tuple(rows.shape[1:])}"
        raise AbsentiaError(f"The model fails on {got}: {type(error).__name__}: {error}") from error
    check_output(output, len(rows))
    return output, -(-max(sizes) // len(rows)), key


class _InDouble(TorchFunctionMode):
    """Let torch compute in double precision in this thread; weights are converted as they are used, one by one."""

    def __torch_function__(self, func: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call a function of torch on doubles, but none that would change a copy in the place of a buffer."""
        name, kwargs = getattr(func, "__name__", ""), kwargs or {}
        in_place = name == "__setitem__" or (name.endswith("_") and not name.endswith("__"))
        if getattr(args[0] if in_place else kwargs.get("out"), "dtype", None) in _LOW:
            raise TypeError(f"{name} would change a copy.")
        func = Tensor.double if name in ("float", "half", "bfloat16") else func
        return _doubled(func(*map(_doubled, args), **{key: _doubled(value) for key, value in kwargs.items()}))


def in_double(model: Model, rows: Rows) -> Any:
    """Run a model in double precision, or move its outputs by a rounding error; a compiled model runs as it is."""
    if isinstance(model, NumpyModel):
        return model(rows, moved=True)
    compiled = "torch._dynamo" in sys.modules and any(map(_is_compiled, [model, *modules_behind(model)]))
    with nullcontext() if compiled else _InDouble():
        return model(rows if compiled else _doubled(rows))


def _doubled(thing: Any) -> Any:
    """Return tensors, also in a list, and types in double precision; numbers as single precision has them."""
    if isinstance(thing, Tensor):
        return thing.double() if thing.dtype in _LOW and thing.numel() <= _MOST_DOUBLED else thing
    if isinstance(thing, float) and abs(thing) < torch.finfo(torch.float32).max:
        return ctypes.c_float(thing).value  # so that a threshold of 0.1 is the 0.1 of a sample
    if type(thing) in (list, tuple):
        return type(thing)(map(_doubled, thing))
    return torch.float64 if isinstance(thing, torch.dtype) and thing in _LOW else thing


def rows_per_batch(model: Model, bytes_per_row: int, device: torch.device, memory: int | None) -> int:
    """Choose a batch size: a power of two that keeps the largest layer's input and output within ``memory`` bytes."""
    if memory is None and device.type == "cuda":
        memory = int(torch.cuda.mem_get_info(device)[0]) // 8
    elif memory is None:
        memory = NUMPY_MEMORY if isinstance(model, NumpyModel) else CPU_MEMORY
    return int(1 << max(1, memory // bytes_per_row).bit_length() - 1)


class OutOfTime(Exception):  # noqa: N818 - the caller did nothing wrong
    """The time limit is reached: work ends between two batches of the model."""


class TimeLimit:
    """A limit on the time that work takes from now on; None for no limit.

    The model's batches are timed. They are small at first, and grow as long as each takes a small share of the time,
    so that work ends soon after the limit. A copy sent to another process has the same deadline.
    """

    def __init__(self, seconds: object = None) -> None:
        if seconds is not None and not (isinstance(seconds, int | float) and seconds > 0):
            raise wrong("seconds", "be a positive number, or None for no limit", seconds)
        self.seconds = math.inf if seconds is None else float(seconds)
        self.began = time.perf_counter()
        # Whether work ends between any two batches. Processes that exchange values end together, between steps.
        self.strict = True
        self.reserve = 0.0  # seconds that are kept for what follows the present work
        self.rows = 0  # that the model has evaluated
        self.seconds_per_row = math.inf  # in the batch with the quickest rows
        self._rows_at_once = _FIRST_ROWS

    def __getstate__(self) -> dict[str, Any]:
        """Return the state with the deadline by the clock on the wall, because each process has its own counter."""
        return vars(self) | {"deadline": time.time() + self.left}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the deadline; the clocks of two machines may differ, so that the time left is never more."""
        deadline = state.pop("deadline")
        vars(self).update(state)
        if self.is_set:
            left = min(self.seconds, deadline - time.time())
            self.began = time.perf_counter() - (self.seconds - left)

    @property
    def is_set(self) -> bool:
        """Whether there is a limit at all."""
        return self.seconds < math.inf

    @property
    def spent(self) -> float:
        """Seconds since the beginning."""
        return time.perf_counter() - self.began

    @property
    def left(self) -> float:
        """Seconds until the limit; at most 0 once it is reached."""
        return self.seconds - self.spent

    @property
    def is_reached(self) -> bool:
        """Whether no time is left beyond what is kept for later."""
        return self.left <= self.reserve

    def check(self) -> None:
        """Raise `OutOfTime` if the limit is reached."""
        if self.strict and self.is_reached:
            raise OutOfTime(f"the limit of {self.seconds:g} s is reached")

    def too_short(self, rows: int, then: str) -> AbsentiaError:
        """Return the error for a limit that is reached before the model has evaluated as many rows as it must."""
        needed = _LONGER * self.seconds
        if self.seconds_per_row < math.inf:
            needed = max(needed, self.spent + rows * self.seconds_per_row)
        if needed > 1:
            needed = math.ceil(needed)
        return wrong("seconds", f"be about {needed:.4g} or more for this model", f"{self.seconds:g}", then)

    def rows_of_a_batch(self, most: int) -> int:
        """Return how many rows to run at once, up to ``most``."""
        if not self.is_set:
            return most
        return min(most, self._rows_at_once)

    def note_batch(self, rows: int, seconds: float) -> None:
        """Note how long a batch took, and let the next one be larger if that was a short time."""
        self.rows += rows
        self.seconds_per_row = min(self.seconds_per_row, seconds / rows)
        if rows >= self._rows_at_once and seconds < _SHARE_OF_A_BATCH * self.seconds:
            self._rows_at_once = _GROWTH_OF_BATCHES * rows


@dataclass
class BatchRunner:
    """Run a model on rows in batches; halve the batch size for good whenever memory runs out.

    Before each batch the time limit is checked, which raises `OutOfTime` once it is reached.
    """

    model: Model
    batch: int
    limit: TimeLimit = field(default_factory=TimeLimit)
    adapt: bool = True  # whether the limit may make batches smaller

    def __call__(self, rows: Rows) -> Outputs:
        """Run the model on all rows."""
        outputs: list[Tensor] = []
        done = 0
        while done < len(rows):
            size = self.limit.rows_of_a_batch(self.batch) if self.adapt else self.batch
            try:
                output = self._run(rows[done : done + size])
                # A copy, because a model may write the next batch's output to the same memory.
                several = isinstance(output, Tensor) and len(rows) > size and not output.requires_grad
                outputs.append(output.clone() if several else output)
            except (MemoryError, RuntimeError) as error:
                if not lacks_memory(error):
                    raise
                if size == 1:
                    lacking = "The model runs out of memory with a single row. Use a smaller model or input."
                    raise AbsentiaError(lacking) from error
                self.batch = min(size, self.batch) // 2
                continue
            check_output(outputs[-1], len(rows[done : done + size]))
            done += size
        return outputs[0] if len(outputs) == 1 else torch.cat(outputs)

    def _run(self, rows: Rows) -> Any:
        """Run one batch within the time limit, and time it."""
        if not self.limit.is_set:
            return read_output(self.model(rows))[0]
        self.limit.check()
        began = time.perf_counter()
        output = read_output(self.model(rows))[0]
        if isinstance(output, Tensor) and output.is_cuda:
            torch.cuda.synchronize(output.device)  # a GPU still computes when the call returns
        self.limit.note_batch(len(rows), time.perf_counter() - began)
        return output


def run_rows(model: Model, x: Rows, limit: TimeLimit | None = None) -> Outputs:
    """Run a model on all rows, in evaluation mode and in batches; on copies, because it may work in place."""
    limit = limit or TimeLimit()
    with evaluation_mode(model):
        limit.check()
        batch = rows_per_batch(model, try_rows(model, x[[0, -1]])[1], x.device, memory=None)
        return BatchRunner(lambda rows: model(rows.clone()), batch, limit)(x)


def read_output(output: Any) -> tuple[Any, str | int | None]:
    """Find the tensor in what a model returns: itself, logits of an object or a dict, or the first of a tuple."""
    if isinstance(output, Tensor):
        return output, None  # where it was found: nowhere inside
    if isinstance(output, Mapping):
        tensors = {key: value for key, value in output.items() if isinstance(value, Tensor)}
        if "logits" not in tensors and len(tensors) != 1:
            then = "Pass lambda rows: model(rows)[key] for the one to explain."
            raise wrong("model", "return one tensor, or a dict with one or with 'logits'", f"{list(output)}", then)
        key = "logits" if "logits" in tensors else next(iter(tensors))
        return tensors[key], key
    if isinstance(getattr(output, "logits", None), Tensor):
        return output.logits, "logits"
    if isinstance(output, tuple | list) and len(output) and isinstance(output[0], Tensor):
        return output[0], 0
    return output, None


def check_output(output: object, rows: int) -> None:
    """Raise an error for an output that is no tensor, lacks a row for each input row, or is not floating point."""
    if not isinstance(output, Tensor):
        then = "Wrap a numpy model with from_numpy(…), or return a tensor."
        raise wrong("model", "return a tensor", type(output).__name__, then)
    if output.ndim == 0 or len(output) != rows:
        raise wrong("model", f"return one row for each of the {rows} input rows", f"shape {tuple(output.shape)}")
    if not output.is_floating_point():
        then = "Return scores or logits rather than the predicted class."
        raise wrong("model", "return floating-point numbers", f"{output.dtype}", then)


def progress(total: int, title: str, unit: str = "it", show: bool = True) -> Any:
    """Return a progress bar for work that takes longer than two seconds, shown on a terminal or in a notebook."""
    from tqdm import tqdm  # imported here, because most work ends before a bar would be shown

    # Work within work that has a bar shows none.
    within = bool(getattr(tqdm, "_instances", ())) or getattr(_WORKER, "busy", False)
    if not show or within or not (sys.stderr.isatty() or "ipykernel" in sys.modules):
        return _hidden_bar(tqdm)
    # Terminals without a size, such as those that some tools make, would hide the bar.
    width, height = shutil.get_terminal_size((100, 24))
    return tqdm(total=total, desc=title, unit=unit, delay=2, miniters=1, leave=False, ncols=width, nrows=height)


# The bar that is never shown, which is made once, because that takes longer than all else of it.
_hidden_bar = cache(lambda kind: kind(disable=True))


def operations_per_row(model: Model, rows: Rows) -> float:
    """Count the floating-point operations of one row: the same on every machine, unlike a time."""
    entries, layers, total = rows[0].numel(), layers_of(model), 0.0
    if isinstance(model, NumpyModel):
        return _UNKNOWN + _PER_ENTRY * entries

    def count(part: nn.Module, _inputs: object, output: Any) -> None:
        """Count two operations for each weight of a layer and each place of its output."""
        nonlocal total
        out = output[0] if isinstance(output, tuple) else output
        for weight in part.parameters(recurse=False):
            if weight.ndim > 1 and not isinstance(part, nn.Embedding) and isinstance(out, Tensor):
                total += 2 * weight.numel() * out.numel() / out.shape[1 if weight.ndim > 2 else -1]

    with evaluation_mode(model):
        if layers:
            run_watched(model, rows.clone(), layers, count)
        else:
            from torch.utils.flop_counter import FlopCounterMode  # imported here, because that takes some seconds

            with FlopCounterMode(display=False) as counter:
                model(rows.clone())
            total = counter.get_total_flops()
    return total / len(rows) + _PER_ROW + _PER_ENTRY * entries


def affordable_rows(model: Model, x: Rows, operations: float) -> int:
    """Return how many rows the model can evaluate with this many operations: a power of two, so that it is stable."""
    return int(2 ** math.floor(math.log2(max(1.0, operations / operations_per_row(model, x[:1])))))


@contextmanager
def quickest_threads(
    work: Callable[[], object], device: torch.device, limit: TimeLimit | None = None
) -> Iterator[int]:
    """Use one thread if work is quicker so than with all of torch's, as with small models; restore their number.

    Their number stays the same if timing them would take too much of the time that is left.
    """
    left = math.inf if limit is None else limit.left
    with _LOCK:
        usual = _THREADS[0] if _THREADS else torch.get_num_threads()
        _THREADS.append(usual)
    try:
        if usual > 1 and device.type == "cpu":
            began = time.perf_counter()
            work()  # the first call is slower than others
            first = time.perf_counter() - began
            calls = 2 if first > _LONG_WORK else 6
            if calls * first <= _SHARE_FOR_THREADS * left:
                alone = _time(work, 1)
                together = _time(work, usual)
                torch.set_num_threads(1 if alone <= together else usual)
        yield torch.get_num_threads()
    finally:
        with _LOCK:
            _THREADS.pop()
            if not _THREADS:  # the last of several calls at a time
                torch.set_num_threads(usual)


def _time(work: Callable[[], object], threads: int) -> float:
    """Time the work with this many threads: the mean of up to three times, because threads may wait only at times."""
    torch.set_num_threads(threads)
    began = time.perf_counter()
    for count in (1, 2, 3):
        work()
        mean = (time.perf_counter() - began) / count
        if mean > _LONG_WORK:
            break
    return mean


def worker_count() -> int:
    """Return how many workers there are: those of an active ``joblib.parallel_config``, or this process alone."""
    joblib = sys.modules.get("joblib")
    backend, jobs = joblib.parallel.get_active_backend() if joblib else (None, 1)
    return 1 if backend is None else int(backend.effective_n_jobs(jobs))


def spread(work: Callable[[Any], Any], items: Sequence[Any], title: str) -> Iterator[Any]:
    """Do work on items and yield the results in their order: here, or by the workers of `worker_count`.

    What the work holds, such as a model, is packed once. Items of a worker that dies are done again.
    """
    if worker_count() == 1 or len(items) < 2:
        yield from map(work, items)
        return
    joblib, written = require("joblib", "scale"), require("cloudpickle", "scale").dumps(work)
    packed = np.frombuffer(written, dtype=np.uint8)  # an array, because these are shared, or sent once
    name, done = hashlib.blake2b(written, digest_size=16).hexdigest(), 0
    one_by_one = joblib.parallel.get_active_backend()[0].supports_return_generator  # Ray and multiprocessing do not
    with progress(len(items), title, "part") as bar:
        for attempt in range(_ATTEMPTS):
            calls = (joblib.delayed(_work_here)(packed, name, item) for item in items[done:])
            try:
                for found in joblib.Parallel(return_as="generator" if one_by_one else "list", batch_size=1)(calls):
                    done += 1
                    bar.update()
                    yield found
                return
            except (BrokenProcessPool, CancelledError):
                if attempt == _ATTEMPTS - 1:
                    raise


# What a worker was sent last, and whether this thread is one.
_SENT: dict[str, Any] = {}
_WORKER = threading.local()


def _work_here(packed: np.ndarray, name: str, item: Any) -> Any:
    """Do packed work on an item, at a worker; unpack it only if it is not the last one."""
    work = _SENT.get(name)  # kept here, because another thread's call may clear it
    if work is None:
        work = pickle.loads(packed.tobytes())
        _SENT.clear()
        _SENT[name] = work
    _WORKER.busy = True
    try:
        with require("joblib").parallel_config("sequential"), _kept_memory():  # workers have no workers
            return work(item)
    finally:
        _WORKER.busy = False


@contextmanager
def _kept_memory() -> Iterator[None]:
    """Keep freed memory where the environment forbids it, as Dask's does: networks then take half the time."""
    given = os.environ.get("MALLOC_TRIM_THRESHOLD_", "")
    allocator: Any = ctypes.CDLL(None) if given.isdigit() and sys.platform == "linux" else None
    kept = _KEEP_MEMORY if hasattr(allocator, "mallopt") else {}  # none if it is not GNU's
    for option, size in kept.items():
        allocator.mallopt(option, size)
    try:
        yield
    finally:
        for option, size in zip(kept, (int(given) if kept else 0, _USUAL_SIZE), strict=False):
            allocator.mallopt(option, size)
        if kept:
            allocator.malloc_trim(0)
