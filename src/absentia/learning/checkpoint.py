"""Checkpoints: a run's stages as they are finished, in one file that is replaced as a whole."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from absentia.errors import wrong
from absentia.learning.search import Descent
from absentia.saving import check_folder, read_tensors, write_tensors


@dataclass
class Checkpoint:
    """What to go on from: baselines that stages ended with, a descent under way, the history so far.

    ``fingerprint`` describes the run; a file of another run is refused. Without a path nothing is written.
    """

    path: Path | None
    fingerprint: str
    stages: dict[str, Tensor] = field(default_factory=dict)
    descent: tuple[str, Descent] | None = None
    history: list[tuple[float, float]] = field(default_factory=list)
    evaluations: int = 0

    @classmethod
    def open(cls, path: str | Path | None, fingerprint: str) -> Checkpoint:
        """Go on from a file, or begin a new one."""
        if path is not None:
            check_folder("checkpoint", Path(path))
        if path is None or not Path(path).exists():
            return cls(None if path is None else Path(path), fingerprint)
        tensors, header = read_tensors(Path(path))
        if header.get("fingerprint") != fingerprint:
            then = "Name another file, or remove this one to start anew."
            raise wrong("checkpoint", "belong to the same model, data and settings", f"{path}, of another run", then)
        stages = {key.removeprefix("stage:"): value for key, value in tensors.items() if key.startswith("stage:")}
        descent = None
        if header["descent"] is not None:
            parts = {name: tensors[f"descent:{name}"] for name in ("point", "held", "mean", "square", "best")}
            descent = (header["descent"], Descent(**parts, step=header["step"], stalled=header["stalled"]))
        history = [(row[0], row[1]) for row in tensors["history"].tolist()]
        return cls(Path(path), fingerprint, stages, descent, history, header["evaluations"])

    def save(self, history: list[tuple[float, float]], evaluations: int) -> None:
        """Write the file anew."""
        if self.path is None:
            return
        tensors = {f"stage:{key}": value.contiguous() for key, value in self.stages.items()}
        tensors["history"] = torch.tensor(history).double().reshape(-1, 2)
        header = {"fingerprint": self.fingerprint, "evaluations": evaluations, "descent": None}
        if self.descent is not None:
            key, state = self.descent
            parts = {"point": state.point, "held": state.held, "mean": state.mean, "square": state.square}
            parts["best"] = state.best
            tensors |= {f"descent:{name}": value.clone().contiguous() for name, value in parts.items()}
            header |= {"descent": key, "step": state.step, "stalled": state.stalled}
        write_tensors(self.path, tensors, header)
