"""The checkpoint of a search: the results of its stages and the descent in progress, in one file."""

from __future__ import annotations

import warnings
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from absentia.errors import AbsentiaError, wrong
from absentia.learning.descent import AveragedDescent, ComparedDescent, Descent
from absentia.learning.search_ends import SearchEnd
from absentia.learning.space import Baselines
from absentia.storage import read_tensors, write_tensors
from absentia.storage.codec import Unpacker, pack
from absentia.storage.old_words import search_end_from_words

# The share by which values of the same model may differ, because the last digits depend on threads and batches.
_SAME_MODEL = 1e-4

# The names of tensors in a file. Those of a stage follow its name and ": ".
_SIGNATURE = "signature"
_HISTORY = "history"
_CLOSE_CALLS = "calls"
_LEVERAGE = ": leverage"
_ADAM = ": adam"
_STEP = ": step"
_RECENT = ": recent"
_BEST = ": best"
_STALLED = ": stalled"


@dataclass(frozen=True, eq=False)
class FinishedStage:
    """The baselines at the end of a stage, and how much each coordinate had mattered until then."""

    baseline: Baselines
    leverage: Float[Tensor, " coordinates"]


@dataclass
class SearchState:
    """Everything that a search needs to resume after an interruption."""

    finished: dict[str, FinishedStage] = field(default_factory=dict)  # by the names of stages
    descent: AveragedDescent | ComparedDescent | None = None  # under way
    close_calls: Float[Tensor, "calls entries"] | None = None  # changed values, and NaN for the others
    history: list[tuple[float, float]] = field(default_factory=list)  # evaluations, and the least loss so far
    evaluations: int = 0
    rows_seen: int = 0  # rows that the model saw, those of trials and checks included
    unfinished: SearchEnd | None = None  # why the search did not converge

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors of a file, by name."""
        tensors = {_HISTORY: torch.tensor(self.history).double().reshape(-1, 2)}
        for stage, finished in self.finished.items():
            tensors[stage] = finished.baseline
            tensors[stage + _LEVERAGE] = finished.leverage
        if self.close_calls is not None:
            tensors[_CLOSE_CALLS] = self.close_calls
        if self.descent is not None:
            tensors |= _descent_tensors(self.descent)
        return tensors

    def header(self) -> dict[str, Any]:
        """Return the header of a file."""
        return {
            "evaluations": self.evaluations,
            "rows_seen": self.rows_seen,
            "unfinished": pack(self.unfinished, {}),
        }

    @classmethod
    def from_file(cls, tensors: dict[str, Tensor], header: dict[str, Any]) -> SearchState:
        """Return the state that a file holds."""
        finished = {}
        for name, tensor in tensors.items():
            if name.endswith(_LEVERAGE):
                stage = name.removesuffix(_LEVERAGE)
                finished[stage] = FinishedStage(tensors[stage], tensor)
        return cls(
            finished=finished,
            descent=_descent_from(tensors),
            close_calls=tensors.get(_CLOSE_CALLS),
            history=[(evaluations, loss) for evaluations, loss in tensors[_HISTORY].tolist()],
            evaluations=header["evaluations"],
            # Older files do not know the rows of checks, but the model saw those of all evaluations.
            rows_seen=header.get("rows_seen", header["evaluations"]),
            unfinished=_end_from(header["unfinished"]),
        )


def _end_from(saved: dict[str, Any] | str | None) -> SearchEnd | None:
    """Return the end of a search that a header holds; those of files before 0.2 are words, "" for none."""
    if not saved:
        return None
    fields = search_end_from_words(saved) if isinstance(saved, str) else saved
    end: SearchEnd = Unpacker({}, {}).unpack(SearchEnd, fields)
    return end


def _descent_tensors(under_way: AveragedDescent | ComparedDescent) -> dict[str, Tensor]:
    """Return the tensors of a descent in progress, by name."""
    stage = under_way.stage
    descent = under_way.descent
    tensors = {
        stage + _ADAM: torch.stack([descent.point, descent.mean, descent.square]),
        stage + _STEP: torch.tensor([descent.step]),
    }
    if isinstance(under_way, AveragedDescent):
        tensors[stage + _RECENT] = torch.stack(list(under_way.recent))
    else:
        tensors[stage + _BEST] = under_way.best
        tensors[stage + _STALLED] = torch.tensor([under_way.stalled])
    return tensors


def _descent_from(tensors: dict[str, Tensor]) -> AveragedDescent | ComparedDescent | None:
    """Return the descent in progress from a file, if it has one."""
    stage = next((name.removesuffix(_ADAM) for name in tensors if name.endswith(_ADAM)), None)
    if stage is None:
        return None
    point, mean, square = tensors[stage + _ADAM].clone()
    descent = Descent(point, mean, square, int(tensors[stage + _STEP]))
    if stage + _RECENT in tensors:
        return AveragedDescent(stage, descent, deque(tensors[stage + _RECENT]))
    return ComparedDescent(stage, descent, tensors[stage + _BEST], int(tensors[stage + _STALLED]))


@dataclass(frozen=True, eq=False)
class Identity:
    """What a search depends on: a digest of data and settings, and values of the model."""

    fingerprint: str
    signature: Float[Tensor, " values"]

    def is_that_of(self, tensors: dict[str, Tensor], header: dict[str, Any]) -> bool:
        """Return whether a file was written by a search of the same model, data and settings."""
        signature = tensors.get(_SIGNATURE)
        if header.get("fingerprint") != self.fingerprint or signature is None:
            return False
        if signature.shape != self.signature.shape:
            return False
        difference = (signature - self.signature).abs().max()
        return not bool(difference > _SAME_MODEL * self.signature.abs().max())


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A file that a search is saved to, and resumed from."""

    path: Path
    identity: Identity

    def read(self) -> SearchState | None:
        """Return the saved state, or None if there is no file; raise an error for a file of another search."""
        if not self.path.exists():
            return None
        tensors, header = read_tensors(self.path)
        if not self.identity.is_that_of(tensors, header):
            then = "Name another file, or remove this one to start over."
            got = f"{self.path}, of another run"
            raise wrong("checkpoint", "belong to the same model, data and settings", got, then)
        return SearchState.from_file(tensors, header)

    def write(self, state: SearchState) -> None:
        """Save the state, or warn if that is not possible, because the search can continue without it."""
        tensors = state.tensors() | {_SIGNATURE: self.identity.signature}
        header = {"fingerprint": self.identity.fingerprint} | state.header()
        try:
            write_tensors(self.path, tensors, header, keep=False)
        except AbsentiaError as error:
            warnings.warn(f"The checkpoint is not up to date. {error}", stacklevel=2)
