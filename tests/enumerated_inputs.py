"""The masked inputs of all coalitions, made one by one, and a fill that only works by presence."""

from dataclasses import dataclass

import torch

from absentia import Players
from absentia.absences import StandIns
from absentia.coalitions import enumerate_coalitions

GROUPS = Players.groups({"a": [0, 4], "b": [2], "c": [5, 1]}, features=7)


def all_masked_inputs(players, x, stand_ins):
    """The same by the plain route: presence and a conditional, (samples, coalitions, draws, …)."""
    presence = players.presence(enumerate_coalitions(len(players)))[None]
    return StandIns(x, stand_ins)(slice(None), presence)


def gather(lattice, samples, draws, coalitions):
    """Put the blocks together: (samples, draws, coalitions, …)."""
    seen = {}
    for block in lattice:
        for pair, sample in enumerate(block.samples.tolist()):
            seen.setdefault((sample, block.first), []).append(block.inputs[pair].clone())
    firsts = sorted({first for _, first in seen})
    return torch.stack(
        [
            torch.stack([torch.cat([seen[sample, first][draw] for first in firsts]) for draw in range(draws)])
            for sample in range(samples)
        ]
    )


@dataclass
class ByPresence:
    """The same fill, without what tells the evaluator that stand-ins do not depend on the coalition."""

    inner: StandIns

    @property
    def draws(self):
        return self.inner.draws

    def __call__(self, samples, presence):
        return self.inner(samples, presence)

    def select(self, samples=None, draws=None):
        return ByPresence(self.inner.select(samples, draws))
