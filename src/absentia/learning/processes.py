"""Learning by several processes at once, as torchrun starts them.

All processes draw the same samples and coalitions and take the same steps. Each evaluates its share of the samples,
gets the values of the others', and follows its own ones back; the gradients add up to that of a single process.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from jaxtyping import Bool, Float, Int
from torch import Tensor

from absentia.absences.protocol import StandIns
from absentia.evaluation import Evaluator


def process_count() -> int:
    """Return how many processes learn together: those of torch's process group, or this one alone."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def is_first() -> bool:
    """Return whether this process shows progress and writes results."""
    return process_count() == 1 or dist.get_rank() == 0


@contextmanager
def joined_processes() -> Iterator[bool]:
    """Join the processes that torchrun started, if it did; yield whether this is the first one, which writes."""
    if not (dist.is_available() and dist.is_torchelastic_launched()):
        yield True
        return
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    try:
        yield is_first()
    finally:
        dist.destroy_process_group()


def shared_values(
    evaluator: Evaluator,
    fill: StandIns,
    coalitions: Bool[Tensor, "*samples coalitions players"],
    rows: Int[Tensor, " samples"],
    **options: Any,
) -> Float[Tensor, "samples coalitions *features"]:
    """Return the values of coalitions of all samples; those that other processes evaluate have no graph."""
    if (count := process_count()) == 1:
        return evaluator.values(fill, coalitions, samples=rows, **options)
    each = -(-len(rows) // count)
    # The last sample fills up the shares of the last processes.
    mine = torch.arange(each * dist.get_rank(), each * (dist.get_rank() + 1)).clamp_max(len(rows) - 1)
    own = coalitions if coalitions.ndim == 2 else coalitions[mine]
    values = evaluator.values(fill.select(mine), own, samples=rows[mine], **options)
    parts = [torch.empty_like(values) for _ in range(count)]
    dist.all_gather(parts, values.detach().contiguous())
    parts[dist.get_rank()] = values
    return torch.cat(parts)[: len(rows)]


def added_up(slope: Tensor, device: torch.device) -> Tensor:
    """Return the sum of the processes' gradients."""
    if process_count() > 1:
        there = slope.to(device)
        dist.all_reduce(there)
        return there.to(slope.device)
    return slope


def decided_by_first(decision: bool, device: torch.device) -> bool:
    """Return what the first process decides, so that all end together."""
    if process_count() > 1:
        there = torch.tensor(decision, dtype=torch.uint8, device=device)
        dist.broadcast(there, 0)
        return bool(there)
    return decision
