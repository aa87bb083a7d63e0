"""What a model is here: a callable from rows to outputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from jaxtyping import Float
from torch import Tensor

Model: TypeAlias = Callable[[Tensor], Tensor]

Outputs: TypeAlias = Float[Tensor, "rows *output"]
