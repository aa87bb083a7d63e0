"""What an audit is about, checked once: the model on samples, the masked region, the games among its players."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Shaped
from torch import Tensor

from absentia.absence import Absence, Baseline, BringsModel, Fill
from absentia.arrays import Array, Table, as_tensor
from absentia.audit.region import GAME_PLAYERS, Region, choose_region, draw_games, only
from absentia.audit.states import Reference, absence_reference, mask_samples, noise_reference, pick_draws
from absentia.audit.white_noise import DataRange, data_range
from absentia.errors import AbsentiaError, wrong
from absentia.game import MAX_PLAYERS
from absentia.inference import Model
from absentia.masked_model import MaskedModel
from absentia.players import Players
from absentia.readouts import Features, Readout


@dataclass(frozen=True, eq=False)
class Problem:
    """The samples under audit, and the games between them and a reference."""

    game: MaskedModel  # over all players; its absence is of no account, for every state brings its own
    region: Players  # the players that are masked; all other entries are always present
    games: tuple[MaskedModel, ...]  # over the region's players; or, where they are too many, one for each draw
    data: Shaped[Tensor, "rows *entries"]
    within: DataRange
    draws: int
    seed: int
    max_players: int

    @property
    def exact(self) -> bool:
        """Whether all coalitions of the region are evaluated."""
        return len(self.region) <= self.max_players

    @property
    def presence(self) -> Bool[Tensor, " *entries"]:
        """Which entries stay when the region is masked."""
        return self.region.presence(torch.zeros(len(self.region), dtype=torch.bool)).to(self.game.x.device)

    @property
    def companion_games(self) -> tuple[MaskedModel, ...]:
        """The games that every absence is played in: over all players where they are few enough."""
        return (self.game,) if len(self.game.players) <= self.max_players else self.games

    def bind(self, absences: Mapping[str, Absence]) -> dict[str, Fill]:
        """Bind every method to the samples; say which of them refuses."""
        return {name: self._bind(name, absence) for name, absence in absences.items()}

    def _bind(self, name: str, absence: Absence) -> Fill:
        try:
            return absence.bind(self.game.x)
        except AbsentiaError as error:
            raise AbsentiaError(f"{name} can't be audited: {error}") from error

    def mask(self, name: str, fill: Fill) -> Shaped[Tensor, "samples draws *entries"]:
        """Mask the region of every sample by a method, as often as there are draws or as the method knows ways."""
        numbers = pick_draws(fill.draws, self.draws, self.seed)
        masked = mask_samples(fill, self.game.samples, self.presence, numbers)
        if not bool(torch.isfinite(masked).all()):
            raise wrong(f"absences[{name!r}]", "fill absent entries with finite values", "NaN or infinity")
        return masked

    def reference(self, reference: object) -> Reference:
        """Make what absent players of the games are replaced by."""
        if isinstance(reference, str):
            if reference != "noise":
                raise wrong("reference", "be 'noise' or an absence such as Baseline(0.0)", repr(reference))
            return noise_reference(self.game.x, self.within, self.seed)
        absence = check_absence("reference", reference)
        if isinstance(absence, BringsModel):
            raise wrong("reference", "mask the model's input", "an absence that brings a model of its own")
        return absence_reference(absence, self.game.x, self.draws, self.seed)


def make_problem(
    model: Model,
    x: Table,
    y: int | Sequence[int] | Array | None,
    players: Players | None,
    readout: Readout | None,
    region: Region | None,
    data: Table | None,
    draws: int,
    max_players: int,
    seed: int,
) -> Problem:
    """Check everything that an audit is handed, and set its games up."""
    if draws < 1:
        raise wrong("draws", "be at least 1", draws)
    if not 1 <= max_players <= MAX_PLAYERS:
        raise wrong("max_players", f"lie between 1 and {MAX_PLAYERS}", max_players)
    game = MaskedModel(model, x, y, players=players, readout=readout, absence=Baseline(0.0))
    if isinstance(game.readout, Features):
        raise wrong("readout", "give one number for an audit", str(game.readout))
    numbers = choose_region(game.players, region)
    masked = only(game.players, numbers)
    rows = _check_data(data, game)
    within = data_range(rows)
    varying = (within.high > within.low) & (masked.labels.to(rows.device) >= 0)
    if not bool(varying.any()):
        then = "Pass data=… with rows that show the range of white noise."
        raise wrong("data", "vary in the region's entries", "constants", then)
    few = len(numbers) <= max_players
    chosen = [numbers] if few else draw_games(numbers, min(GAME_PLAYERS, max_players), draws, seed)
    games = tuple(
        MaskedModel(model, game.x, players=only(game.players, some), readout=game.readout, absence=Baseline(0.0))
        for some in chosen
    )
    return Problem(game, masked, games, rows, within, draws, seed, max_players)


def _check_data(data: Table | None, game: MaskedModel) -> Tensor:
    """Take rows like the samples, as the model takes them; the samples themselves for None."""
    if data is None:
        return game.x
    rows = as_tensor("data", data)
    if rows.ndim < 2 or len(rows) == 0 or rows.shape[1:] != game.x.shape[1:]:
        expected = f"hold rows of the shape of one sample, {tuple(game.x.shape[1:])}"
        raise wrong("data", expected, f"shape {tuple(rows.shape)}")
    if not bool(torch.isfinite(rows).all()):
        row = int((~torch.isfinite(rows)).flatten(1).any(1).nonzero()[0])
        raise wrong("data", "be finite", f"NaN or infinity in row {row}")
    return rows.to(game.x)


def check_absences(absences: object, y: object) -> dict[str, Absence]:
    """Check the methods to audit: a name and an absence each."""
    if absences is None and isinstance(y, Mapping):
        then = "Write audit(model, x, None, {…}) where there is no y."
        raise wrong("absences", "come after y", "them in its place", then)
    if not isinstance(absences, Mapping) or not absences:
        got = "none" if absences is None or isinstance(absences, Mapping) else type(absences).__name__
        raise wrong("absences", "map names to absences, as in {'zero': Baseline(0.0)}", got)
    for name, absence in absences.items():
        if not isinstance(name, str):
            raise wrong("absences", "have names that are text", repr(name))
        check_absence(f"absences[{name!r}]", absence)
    return dict(absences)


def check_absence(argument: str, absence: object) -> Absence:
    """Refuse what is not an absence; the class of one is not one."""
    if isinstance(absence, type):
        raise wrong(argument, "be an absence such as Baseline(0.0)", f"the class {absence.__name__}", "Call it.")
    if not isinstance(absence, Absence):
        raise wrong(argument, "be an absence such as Baseline(0.0)", type(absence).__name__)
    return absence


def describe_games(problem: Problem) -> list[str]:
    """Say in which games figures were measured, where that is not among all players."""
    players = len(problem.game.players)
    notes = []
    if not problem.exact:
        notes.append(
            f"The region's {len(problem.region)} players are too many for all coalitions: every draw is a game of "
            f"{len(problem.games[0].players)} of them, drawn at random; the others keep their state."
        )
    if players > problem.max_players:
        among = "the region's players" if problem.exact else "the drawn games' players"
        notes.append(f"The games of each absence itself are among {among}: all {players} would be too many.")
    return notes
