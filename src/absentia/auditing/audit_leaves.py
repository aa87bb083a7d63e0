"""What an audit measures from the leaves of a model's trees, without running the model."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from absentia.absences import StandIns
from absentia.auditing.jackknife import Drawn
from absentia.evaluation import Evaluator
from absentia.evaluation.leaf_values import NotFromLeaves
from absentia.learning.leaf_source import LeafSource, leaf_source
from absentia.players import Players
from absentia.readouts import EveryClass, Readout
from absentia.terms import Terms
from absentia.text import count_of


@dataclass(frozen=True, eq=False)
class AuditLeaves:
    """The leaves of the audited model, and the players of its columns in the region that R masks."""

    source: LeafSource
    region_players: np.ndarray  # of each column of the trees; −1 outside of the region
    region_size: int

    @property
    def note(self) -> str:
        """How values are computed, for records."""
        trees = count_of(self.source.tree_count, "tree")
        return f"Values are computed from the leaves of {trees}: the model is not run on masked inputs."

    @property
    def has_exact_games(self) -> bool:
        """Whether the interactions of all players are few and follow from the leaves."""
        return self.source.sums_are_exact

    @property
    def most_on_a_path(self) -> int:
        """A bound on the number of players on which a leaf depends."""
        return self.source.leaves.trees.most_on_a_path

    def values(
        self,
        fill: StandIns,
        coalitions: Bool[Tensor, "*own coalitions players"],
        numbers: Int[Tensor, " samples"],
        readout: Readout | EveryClass,
    ) -> Tensor:
        """Return the values of coalitions, averaged over the draws of a fill: samples × coalitions (× numbers)."""
        leaves = self.source.leaves
        present = self.source.encode(fill.x)
        owners = numbers.repeat_interleave(coalitions.shape[-2])
        total = torch.zeros(())
        for draw in range(fill.draws):
            absent = self.source.encode(fill.values[:, draw]).expand_as(present)
            outputs = self.source.outputs(present, absent.contiguous(), coalitions.cpu())
            flat = leaves.model_outputs(outputs.reshape(-1, outputs.shape[2]))
            values = readout(flat, owners).double()
            total = total + values.reshape(len(present), coalitions.shape[-2], *values.shape[1:])
        return total / fill.draws

    def strengths(self, fill: StandIns, numbers: Int[Tensor, " samples"]) -> Float[Tensor, " samples"]:
        """Return Σ|U(S)| of the games of the region's players, with the first draw of a fill."""
        from absentia.trees.effect_sums import strengths
        from absentia.trees.joined_terms import player_keys

        weights = self.source.weights
        trees = self.source.leaves.trees
        keys = player_keys(self.region_size)
        played = trees.played._replace(player=self.region_players, keys=keys)
        present = self.source.encode(fill.x)
        absent = self.source.encode(fill.values[:, 0]).expand_as(present).contiguous()
        kinds = weights.kinds[numbers.numpy()]
        return torch.from_numpy(strengths(played, present.numpy(), absent.numpy(), weights.weights, kinds))

    def rounding(self, numbers: Int[Tensor, " samples"]) -> Float[Tensor, " samples"]:
        """Return the size of the rounding errors of each sample's values."""
        trees = self.source.leaves.trees
        by_kind = np.array([trees.ensemble.strength(weights) for weights in self.source.weights.weights])
        sizes = by_kind[self.source.weights.kinds[numbers.numpy()]]
        return torch.from_numpy(np.finfo(np.float64).eps * sizes)

    def terms(self, fill: StandIns, groups: tuple[tuple[int, ...], ...], number: int) -> GroupedTerms:
        """Return the interactions of one sample for each group of draws; the fill is that of the sample alone."""
        from absentia.trees.masked_trees import LeafWeights

        weights = self.source.weights
        kind = weights.kinds[[number]]
        own = LeafWeights(weights.weights, weights.base, kind)
        trees = self.source.leaves.trees
        samples = self.source.encode(fill.x).numpy()
        stand_ins = self.source.encode(fill.values[0]).numpy()
        by_group = []
        for group in groups:
            masked = replace(trees, samples=samples, stand_ins=stand_ins[None, list(group)])
            by_group.append(masked.terms(own, 0))
        rows: np.ndarray = np.concatenate([terms.members for terms in by_group])
        sets, places = np.unique(rows, axis=0, return_inverse=True)
        effects = np.zeros((len(groups), len(sets)))
        ends = np.cumsum([len(terms.effects) for terms in by_group])
        for row, terms, own_places in zip(effects, by_group, np.split(places.ravel(), ends[:-1]), strict=True):
            row[own_places] = terms.effects
        rounding = max(terms.rounding for terms in by_group)
        return GroupedTerms(torch.from_numpy(sets), Drawn.of(list(torch.from_numpy(effects)), groups), rounding)


@dataclass(frozen=True, eq=False)
class GroupedTerms:
    """The sets of a sample, and their effects by groups of draws."""

    sets: Bool[Tensor, "sets players"]
    effects: Drawn
    rounding: float

    def listed(self, effects: Float[Tensor, " sets"]) -> Terms:
        """Return the sets with some of the effects as terms."""
        return Terms.listed(self.sets, effects, noise=torch.tensor([self.rounding], dtype=torch.float64))


def find_leaves_for_audit(evaluator: Evaluator, region: Players, row: Tensor) -> AuditLeaves | NotFromLeaves:
    """Return the leaves of the task's model if its trees can be read; ``row`` is one of the data."""
    source = leaf_source(evaluator, row)
    if isinstance(source, NotFromLeaves):
        return source
    # The player of the region that each player is, or −1.
    region_numbers = np.full(len(evaluator.players), -1)
    labels = evaluator.players.labels.cpu().numpy()
    owned = labels >= 0
    region_numbers[labels[owned]] = region.labels.cpu().numpy()[owned]
    player = source.leaves.trees.player
    region_players = np.where(player >= 0, region_numbers[player], -1)
    return AuditLeaves(source, region_players, len(region))


def coalitions_with_others(
    coalitions: Bool[Tensor, "coalitions some"], players: Players, every_player: Players
) -> Bool[Tensor, "coalitions all"]:
    """Return coalitions of some players as coalitions of all, in which all others are present."""
    rows = torch.ones(len(coalitions), len(every_player), dtype=torch.bool)
    owned = players.labels >= 0
    numbers = every_player.labels[owned].cpu()
    rows[:, numbers] = coalitions[:, players.labels[owned].cpu()]
    return rows
