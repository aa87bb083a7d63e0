"""Learning with several processes at once, as started by torchrun.

All processes draw the same samples and coalitions and take the same steps. Each evaluates its share of the samples,
receives the values of the others, and backpropagates through its own. The sum of the gradients is that of one
process.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from jaxtyping import Bool, Float, Int
from torch import Tensor

from absentia.absences.protocol import StandIns
from absentia.data import count_blocks
from absentia.evaluation import Evaluator


def process_count() -> int:
    """Return how many processes learn together: those of torch's process group, or this one alone."""
    if dist.is_available() and dist.is_initialized():
        return dist.get_world_size()
    return 1


def is_first() -> bool:
    """Return whether this process shows progress and writes results."""
    return process_count() == 1 or dist.get_rank() == 0


@contextmanager
def joined_processes() -> Iterator[bool]:
    """Join the processes that torchrun started, if any; yield whether this process is the one that writes."""
    if not (dist.is_available() and dist.is_torchelastic_launched()):
        yield True
        return
    backend = "nccl" if torch.cuda.is_available() else "gloo"
    dist.init_process_group(backend)
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
    processes = process_count()
    if processes == 1:
        return evaluator.values(fill, coalitions, samples=rows, **options)
    rank = dist.get_rank()
    share = count_blocks(len(rows), processes)
    # All shares have the same length: the last sample fills up those of the last processes.
    own_rows = torch.arange(share * rank, share * (rank + 1)).clamp_max(len(rows) - 1)
    own_coalitions = coalitions if coalitions.ndim == 2 else coalitions[own_rows]
    own_values = evaluator.values(fill.select(own_rows), own_coalitions, samples=rows[own_rows], **options)
    shares = [torch.empty_like(own_values) for _ in range(processes)]
    dist.all_gather(shares, own_values.detach().contiguous())
    shares[rank] = own_values
    return torch.cat(shares)[: len(rows)]


def summed_over_processes(gradient: Tensor, device: torch.device) -> Tensor:
    """Return the sum of the processes' gradients."""
    if process_count() == 1:
        return gradient
    on_device = gradient.to(device)
    dist.all_reduce(on_device)
    return on_device.to(gradient.device)


def rows_of_all_processes(rows: int, device: torch.device) -> int:
    """Return the sum of the rows that the processes' models saw."""
    if process_count() == 1:
        return rows
    on_device = torch.tensor(rows, dtype=torch.int64, device=device)
    dist.all_reduce(on_device)
    return int(on_device)


def decided_by_first(decision: bool, device: torch.device) -> bool:
    """Return the decision of the first process, so that all processes end together."""
    if process_count() == 1:
        return decision
    on_device = torch.tensor(decision, dtype=torch.uint8, device=device)
    dist.broadcast(on_device, 0)
    return bool(on_device)
