"""Joining baselines that were learned in parts."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from absentia.learning.learned import LearnedBaseline, LearningRecord, best_candidate
from absentia.learning.value_profiles import join_profiles


def join_parts(parts: Sequence[LearnedBaseline], seconds: float) -> LearnedBaseline:
    """Join the baselines of parts: average losses over owners, sum evaluations, and concatenate histories."""
    first = parts[0]
    classes = None
    if first.classes is not None:
        classes = torch.cat([part.classes for part in parts if part.classes is not None])
    return replace(
        first,
        values=torch.cat([part.values for part in parts]),
        classes=classes,
        record=_join_records(parts, seconds),
        loss=_mean_loss(parts),
        history=_join_histories(parts),
        profiles=join_profiles([part.profiles for part in parts]),
    )


def _join_records(parts: Sequence[LearnedBaseline], seconds: float) -> LearningRecord:
    """Return the record of the first part that did not converge, or of the first part, with the totals of all."""
    records = [part.record for part in parts]
    owners = [len(part.values) for part in parts]
    names = parts[0].names
    finals = _mean_by_name([dict(zip(record.starts, record.final_losses, strict=True)) for record in records], owners)
    compared = _mean_by_name([record.compared for record in records], owners)
    picked: Counter[str] = Counter()
    for record in records:
        picked.update(record.picked)
    undetermined = tuple(player for player in range(len(names)) if all(part.undetermined[player] for part in parts))
    typical = next((record for record in records if not record.converged), records[0])
    joined = replace(
        typical,
        starts=tuple(finals),
        final_losses=tuple(finals.values()),
        evaluations=sum(record.evaluations for record in records),
        seconds=seconds,
        undetermined=tuple(names[player] for player in undetermined),
        undetermined_numbers=undetermined,
        compared=compared,
        kept_aside=sum(record.kept_aside for record in records),
        picked=dict(picked),
    )
    return replace(joined, chosen=best_candidate(compared, joined.learned_names))


def _mean_by_name(losses: Sequence[dict[str, float]], owners: Sequence[int]) -> dict[str, float]:
    """Return the mean of each named loss over the owners of the parts that know it."""
    names = dict.fromkeys(name for part in losses for name in part)
    means: dict[str, float] = {}
    for name in names:
        known = [part.get(name, 0.0) for part in losses]
        weights = [count if name in part else 0 for part, count in zip(losses, owners, strict=True)]
        means[name] = float(np.average(known, weights=weights))
    return means


def _mean_loss(parts: Sequence[LearnedBaseline]) -> float:
    """Return the mean loss over owners, ignoring parts that ran out of time."""
    measured = [part for part in parts if not math.isnan(part.loss)]
    if not measured:
        return math.nan
    total = sum(part.loss * len(part.values) for part in measured)
    return total / sum(len(part.values) for part in measured)


def _join_histories(parts: Sequence[LearnedBaseline]) -> Float[Tensor, "checks 2"]:
    """Concatenate the histories; evaluations include those of the previous parts."""
    histories = []
    evaluations = 0
    for part in parts:
        histories.append(part.history + torch.tensor([evaluations, 0]))
        # Values from leaves are no evaluations of the model, but the history counts them.
        last = int(part.history[-1, 0]) if len(part.history) else 0
        evaluations += max(part.record.evaluations, last)
    return torch.cat(histories)
