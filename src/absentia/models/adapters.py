"""Adapters that turn any model into a callable on torch rows."""

from __future__ import annotations

from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn

from absentia.data import check_columns
from absentia.errors import wrong
from absentia.models.arrays import NumpyModel
from absentia.models.estimators import wrap_estimator
from absentia.models.model import Model

# Single precision holds all integers up to this one.
_LARGEST_EXACT_INTEGER = 2**24


def as_model(model: Any) -> Model:
    """Return a model as a callable on torch rows, wrapping estimators and boosters."""
    if isinstance(model, nn.Module | NumpyModel):
        return model
    estimator = estimator_of(model)
    if estimator is not None:
        return wrap_estimator(estimator)
    if not callable(model):
        then = "Wrap a numpy model with from_numpy(predict)."
        raise wrong("model", "be an nn.Module, an estimator, or a callable on torch rows", type(model).__name__, then)
    return model


def estimator_of(model: Any) -> Any | None:
    """Return the estimator or booster that a user passes, itself or by its bound ``predict_proba``; or else None."""
    if isinstance(model, nn.Module | NumpyModel):
        return None
    owner = getattr(model, "__self__", None)
    is_bound_predict_proba = owner is not None and getattr(model, "__name__", "") == "predict_proba"
    if is_bound_predict_proba and not isinstance(owner, nn.Module):
        model = owner
    predicts = hasattr(model, "predict") and not callable(model)
    if predicts or hasattr(model, "predict_proba") or hasattr(model, "decision_function"):
        return model
    return None


def check_fit(model: Model, columns: Any) -> None:
    """Raise an error if the columns of a DataFrame are not those of the model's fit, in the same order."""
    check_columns("x", columns, getattr(model, "columns", None))


def labels_of(model: Model) -> tuple[Any, ...]:
    """Return the classes that a model knows, in the order of its outputs; most models know none."""
    if isinstance(model, NumpyModel):
        return model.labels
    return tuple(getattr(model, "class_names", ()))


def module_of(model: Model) -> nn.Module | None:
    """Return the module behind a model: itself, or the owner of a bound method."""
    owner = getattr(model, "__self__", model)
    return owner if isinstance(owner, nn.Module) else None


def placement(model: Model, x: Tensor) -> tuple[torch.device, torch.dtype]:
    """Return the device and the floating-point dtype of the model."""
    module = module_of(model)
    tensors = () if module is None else chain(module.parameters(), module.buffers())
    weights = [tensor for tensor in tensors if tensor.is_floating_point()]
    if weights:  # the largest of them, because a single number may have a type of its own
        largest = max(weights, key=Tensor.numel)
        return largest.device, largest.dtype
    if x.is_floating_point():
        return x.device, x.dtype
    # Integers that the default type would round, such as times in seconds, get a type that holds them.
    is_exact = bool((x.double().abs() <= _LARGEST_EXACT_INTEGER).all())
    if is_exact and not isinstance(model, NumpyModel):
        return x.device, torch.get_default_dtype()
    return x.device, torch.float64
