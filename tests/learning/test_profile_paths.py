"""Players are moved along values, quantile levels or codes."""

import torch

from absentia import Players
from absentia.learning.profile_paths import MOST_POINTS, player_path
from absentia.learning.space import make_space
from absentia.learning.value_profiles import ProfilePath, SkipReason
from seeded_draws import generator


def data():
    x = torch.rand(200, 6, generator=generator()).double()
    x[:, 3] = (4 * x[:, 3]).floor()
    x[:, 5] = 0.7
    return x


def path(player, tie=None, held=None):
    x = data()
    players = Players.groups(
        {"a": [0], "pair": [1, 2], "code": [3], "b": [4], "constant": [5]}, features=6
    ).with_categorical([3])
    space = make_space(x, players, "range", tie, held)
    present = x.mean(0)[None].clone()
    present[:, 3] = 2.0
    return player_path(space, players, player, present), present


def test_a_number_is_moved_from_bound_to_bound_and_nothing_else():
    moved, present = path(0)
    x = data()
    assert moved.kind is ProfilePath.VALUES
    assert 9 <= len(moved.points) <= MOST_POINTS
    assert (float(moved.points[0]), float(moved.points[-1])) == (float(x[:, 0].min()), float(x[:, 0].max()))
    baselines = moved.baselines(present)
    assert baselines[:, 0, 0].tolist() == moved.points.tolist()
    assert torch.equal(baselines[:, 0, 1:], present[:, 1:].expand(len(baselines), -1))


def test_several_entries_take_the_same_quantile_level():
    moved, present = path(1)
    assert moved.kind is ProfilePath.LEVELS
    middle = moved.points.tolist().index(0.5)
    torch.testing.assert_close(moved.baselines(present)[middle, 0, 1:3], data()[:, 1:3].quantile(0.5, dim=0))


def test_categories_take_their_codes_and_constants_stay():
    moved, _ = path(2)
    assert (moved.kind, moved.points.tolist(), moved.learned.tolist()) == (ProfilePath.CODES, [0, 1, 2, 3], [2])
    assert path(4)[0].reason is SkipReason.FIXED


def test_entries_that_share_a_value_move_together_and_held_ones_do_not():
    tied, present = path(0, tie=torch.tensor([0, 1, 2, 3, 0, 5]))
    assert torch.equal(*tied.baselines(present)[:, 0, [0, 4]].T)
    assert path(0, held=torch.tensor([1, 0, 0, 0, 0, 0]))[0].reason is SkipReason.FIXED
