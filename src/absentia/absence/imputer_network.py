"""The networks of a masked variational autoencoder: what they say of absent entries, and how far off they are.

A latent z says what the present entries x_P leave open. The masked encoder p(z | x_P) guesses it from them, the full
encoder q(z | x) knows it from the whole row, and the decoder p(x_A | z, x_P) gives the absent entries. Training makes
the evidence bound large: E_q log p(x_A | z, x_P) − KL(q(z | x) ‖ p(z | x_P)) [ivanov2019conditioning,
frye2021manifold].
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from absentia.absence.networks import Standardise
from absentia.absence.towers import decoder, features_shape, tower

# Deviations of the decoder, in units of the data's: below the least a perfectly predictable entry would outweigh all
# others, above the most one could be given up.
_LEAST_DEVIATION, _MOST_DEVIATION = 0.05, 2.0
_LEAST_LOG, _MOST_LOG = -5.0, 3.0  # of the latent's deviations
# The masked encoder's guesses may not run away where nothing else holds them [ivanov2019conditioning].
_RESTRAINT = 1e-4


class ImputerNetwork(nn.Module):
    """Two encoders and a decoder, on rows whose absent entries are NaN; all inside is standardised."""

    def __init__(self, read: Standardise, latent: int, hidden: int, patch: int) -> None:
        super().__init__()
        shape = read.shape
        self.read = read
        self.latent = latent
        self.hidden = hidden
        self.patch = patch
        self.features = math.prod(features_shape(shape, hidden, patch))
        self.context = tower(shape, hidden, patch)  # what the present entries say
        self.guess = nn.Sequential(nn.Flatten(), nn.Linear(self.features, 2 * latent))  # the masked encoder's end
        self.know = nn.Sequential(tower(shape, hidden, patch), nn.Flatten(), nn.Linear(self.features, 2 * latent))
        self.decode = decoder(shape, latent, hidden, patch)

    def draw(
        self,
        rows: Float[Tensor, "rows *entries"],
        latent_noise: Float[Tensor, "draws latent"],
        noise: Float[Tensor, "draws *entries"],
    ) -> Float[Tensor, "rows draws *entries"]:
        """Draw rows from what the present entries leave open, in the data's units, by given random numbers."""
        context = self.context(self.read(rows))
        mean, deviation = _latent(self.guess(context))
        latent = mean[:, None] + deviation[:, None] * latent_noise
        wide = context[:, None].expand(-1, len(noise), *context.shape[1:])
        centre, spread = _decoded(self.decode(latent.flatten(0, 1), wide.flatten(0, 1)))
        drawn = centre.unflatten(0, latent.shape[:2]) + spread.unflatten(0, latent.shape[:2]) * noise
        return drawn * self.read.scale + self.read.mean

    def loss(
        self,
        rows: Float[Tensor, "rows *entries"],
        presence: Bool[Tensor, "rows *entries"],
        latent_noise: Float[Tensor, "rows latent"],
    ) -> Float[Tensor, " rows"]:
        """Give minus the evidence bound of the absent entries, per entry of a row.

        In training an entry counts by the deviation that it is given: uncertain entries, whose likelihood is flat,
        would otherwise hardly be learned at all [seitzer2022pitfalls].
        """
        wanted = self.read.standardised(rows)
        context = self.context(self.read.code(torch.where(presence, wanted, 0.0), presence))
        guessed, known = _latent(self.guess(context)), _latent(self.know(self.read.code(wanted, presence)))
        centre, spread = _decoded(self.decode(known[0] + known[1] * latent_noise, context))
        likelihood = -0.5 * ((wanted - centre) / spread).square() - spread.log() - 0.5 * math.log(2 * math.pi)
        if self.training:
            likelihood = likelihood * spread.detach()
        told = torch.where(presence, 0.0, likelihood).flatten(1).sum(1)
        restraint = _RESTRAINT * (guessed[0].square() / 2 + guessed[1] - guessed[1].log()).sum(1)
        return (_divergence(known, guessed) - told + restraint) / math.prod(self.read.shape)


def _latent(output: Tensor) -> tuple[Tensor, Tensor]:
    mean, log_deviation = output.chunk(2, dim=-1)
    return mean, log_deviation.clamp(_LEAST_LOG, _MOST_LOG).exp()


def _decoded(output: Tensor) -> tuple[Tensor, Tensor]:
    centre, spread = output.unbind(1)
    return centre, _LEAST_DEVIATION + (_MOST_DEVIATION - _LEAST_DEVIATION) * spread.sigmoid()


def _divergence(one: tuple[Tensor, Tensor], other: tuple[Tensor, Tensor]) -> Float[Tensor, " rows"]:
    """Give the Kullback–Leibler divergence of two Gaussians of independent entries."""
    ratio = (one[1] / other[1]).square()
    return 0.5 * (ratio - ratio.log() - 1 + ((one[0] - other[0]) / other[1]).square()).sum(-1)
