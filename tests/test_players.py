import pytest
import torch

import absentia as ab
from absentia import AbsentiaError, Players
from absentia.coalitions import enumerate_coalitions


def test_features_are_players_of_their_own():
    players = Players.features(["a", "b", "c"])
    coalitions = enumerate_coalitions(3)
    assert torch.equal(players.presence(coalitions), coalitions)
    assert Players.features(2).names == ("x0", "x1")


def test_groups_are_present_together_and_the_rest_always():
    players = Players.groups({"ac": ["a", 2], "d": ["d"]}, features=["a", "b", "c", "d"])
    presence = players.presence(torch.tensor([[False, False], [True, False], [False, True]]))
    assert presence.int().tolist() == [[0, 1, 0, 0], [1, 1, 1, 0], [0, 1, 0, 1]]


def test_grid_cells_tile_the_image_in_all_channels():
    players = Players.grid((3, 28, 28), cells=(7, 7))
    assert len(players) == 49
    coalition = torch.zeros(49, dtype=torch.bool)
    coalition[7 * 2 + 3] = True
    expected = torch.zeros(3, 28, 28, dtype=torch.bool)
    expected[:, 8:12, 12:16] = True
    assert torch.equal(players.presence(coalition), expected)


def test_grid_of_a_size_that_does_not_divide_covers_every_pixel_with_cells_of_nearly_one_size():
    players = Players.grid((1, 10, 11), cells=(3, 4))
    counts = torch.bincount(players.labels.flatten())
    assert len(counts) == 12
    assert counts.min() >= 6
    assert counts.max() <= 12


def test_only_makes_the_other_cells_always_present():
    central = [(row, column) for row in range(1, 5) for column in range(2, 5)]
    players = Players.grid((1, 28, 28), cells=(7, 7), only=central)
    assert players.names[:4] == ("r1c2", "r1c3", "r1c4", "r2c2")
    absent = ~players.presence(torch.zeros(12, dtype=torch.bool))
    expected = torch.zeros(1, 28, 28, dtype=torch.bool)
    expected[:, 4:20, 8:20] = True
    assert torch.equal(absent, expected)


def test_segments_follow_the_label_map():
    labels = torch.tensor([[0, 1, -1], [1, 0, -1]])
    players = Players.segments(labels, channels=2)
    presence = players.presence(torch.tensor([True, False]))
    expected = torch.tensor([[1, 0, 1], [0, 1, 1]]).bool()
    assert torch.equal(presence, expected.expand(2, 2, 3))


def test_tokens_may_be_embedded():
    players = Players.tokens(["not", "bad"], embedding=3)
    assert players.presence(torch.tensor([False, True])).int().tolist() == [[0, 0, 0], [1, 1, 1]]
    assert not players.integer
    assert Players.tokens(4).integer


def test_presence_takes_any_leading_axes():
    players = Players.grid((1, 4, 4), cells=(2, 2))
    coalitions = torch.rand(2, 5, 4) > 0.5
    assert players.presence(coalitions).shape == (2, 5, 1, 4, 4)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Players.segments(torch.tensor([0, 2, 2])), r"labels must hold .* without a gap\. Got labels 0, 2"),
        (lambda: Players.segments(torch.tensor([-2, 0, 1])), r"labels must hold .* without a gap"),
        (lambda: Players.segments(torch.tensor([0.0, 1.0])), r"labels must be integers\. Got torch.float32"),
        (lambda: Players.segments(torch.tensor([-1, -1])), "players must own at least one entry"),
        (lambda: Players.grid((1, 4, 4), cells=(5, 2)), r"cells must lie between \(1, 1\) and \(4, 4\)"),
        (lambda: Players.grid((1, 4, 4), (2, 2), only=[(0, 0), (2, 0)]), r"only must list each cell .* \[\(2, 0\)\]"),
        (lambda: Players.grid((1, 4, 4), (2, 2), only=[(0, 0), (0, 0)]), "only must list each cell"),
        (
            lambda: Players.groups({"a": [7]}, features=3),
            r"groups must hold features \(x0, x1, x2\) or their numbers 0 … 2. Got 7",
        ),
        (lambda: Players.groups({"a": ["z"]}, features=3), "groups must hold features .* Got 'z'"),
        (lambda: Players.groups({"a": [True]}, features=3), "groups must hold features .* Got True"),
        (
            lambda: Players.groups({"a": [0], "b": [0]}, features=3),
            "groups must name each feature once. Got 'x0' twice",
        ),
        (lambda: Players.groups({"a": [0], "b": []}, features=3), "groups must have at least one feature each"),
        (lambda: Players.features(["a"], {"b": ["no"]}), r"categories must name features \(a\). Got 'b'"),
        (lambda: Players.features(2, categorical=["z"]), r"categorical must hold features \(x0, x1\) .* Got 'z'"),
        (lambda: Players.features(2, categorical=[0, [1, 0]]), "categorical must name each feature once. Got 'x0'"),
        (
            lambda: Players(torch.arange(2), ("a", "b"), categorical=((2,),)),
            "categorical must name columns from 0 to 1. Got 2",
        ),
        (lambda: Players(torch.tensor([0, 1]), ("a",)), "names must name each of the 2 players once. Got 1 names"),
    ],
)
def test_bad_input_gets_a_sentence(make, sentence):
    with pytest.raises(AbsentiaError, match=sentence):
        make()


def test_some_players_are_kept_by_name_or_number_in_their_order():
    players = Players.groups({"a": [0, 1], "b": [2], "c": [3]}, 5).only(["c", 0])
    assert players.names == ("a", "c")
    assert players.labels.tolist() == [0, 0, -1, 1, -1]


@pytest.mark.parametrize(
    ("chosen", "sentence"),
    [
        (["x0", "weight"], r"chosen must hold players \(x0, x1, x2, x3\) or their numbers 0 … 3. Got 'weight'"),
        ([4], "chosen must hold players .* Got 4"),
        ([-1], "chosen must hold players .* Got -1"),
        ([True], "chosen must hold players .* Got True"),
        ([], "chosen must name at least one player"),
        (["x0", 0], "chosen must name each player once. Got 'x0' twice"),
        ("x0", r"chosen must be a list of players.*Pass \['x0'\]"),
    ],
)
def test_players_that_are_not_there_cannot_be_kept(chosen, sentence):
    with pytest.raises(AbsentiaError, match=sentence):
        Players.features(4).only(chosen)


def test_series_are_cut_into_parts():
    players = Players.grid((2, 10), cells=(3,))
    assert players.names == ("t0–3", "t4–6", "t7–9")
    assert players.labels.tolist() == [[0, 0, 0, 0, 1, 1, 1, 2, 2, 2]] * 2
    assert not players.is_image
    assert Players.grid((1, 4), cells=(4,), only=[(2,)]).names == ("t2",)
    x = torch.randn(3, 2, 10, generator=torch.Generator().manual_seed(0))
    explanation = ab.explain(lambda rows: rows.sum((1, 2)), x, players=players, absence=0.0)
    assert torch.allclose(explanation.shapley.values, players.sums(x.double()), atol=1e-5)
    for shape, cells in (((2, 10), (11,)), ((2, 10), (2, 2)), ((1, 4, 4), (2,))):
        with pytest.raises(AbsentiaError, match="cells must lie between"):
            Players.grid(shape, cells)
    with pytest.raises(AbsentiaError, match=r"shape must be \(channels, height, width\) or \(channels, length\)"):
        Players.grid((8,), (2,))


def test_categories_are_shown_by_their_names():
    players = Players.features(["city", "age"], {"city": ["Bern", "Oslo"]})
    rows = torch.tensor([[1.0, 30.0], [0.5, 41.5]])
    assert players.texts(rows) == [["Oslo", "30"], ["varies", "41.5"]]
    gaps = Players.features(["city"], {"city": ["Bern", float("nan")]})
    assert gaps.texts(torch.tensor([[1.0]])) == [["missing"]]
    assert players.only(["city"]).categories == (("Bern", "Oslo"),)
    assert Players.features(2).categories == ()


def test_players_carry_which_entries_are_categories():
    players = Players.features(
        ["city", "age", "red", "green"], {"city": ["Bern", "Oslo"]}, categorical=[["green", 2]]
    )
    assert players.categorical == ((0,), (2, 3))
    assert players.masks_categories
    age = players.only(["age"])
    assert age.categorical == players.categorical
    assert not age.masks_categories
    assert players.each_entry().categorical == players.categorical
    groups = Players.groups(
        {"colour": ["red", "green"]}, ["city", "age", "red", "green"], categorical=[[2, 3], "city"]
    )
    assert groups.categorical == ((0,), (2, 3))
    assert groups.each_entry().categorical == groups.categorical
    assert Players.features(3).categorical == ()
    assert Players.features(3, categorical=range(2)).categorical == ((0,), (1,))


def test_entries_whose_categories_have_names_are_categorical():
    players = Players(torch.tensor([0, 1, 0]), ("a", "b"), categories=(("no", "yes"), ()))
    assert players.categorical == ((0,), (2,))


def test_categories_may_be_added_but_not_contradicted():
    players = Players.features(5, categorical=[0, [1, 2]])
    assert players.with_categorical([]) is players
    assert players.with_categorical([(2, 1), 0]) is players
    assert players.with_categorical([[4, 3]]).categorical == ((0,), (1, 2), (3, 4))
    sentence = r"categorical must agree with the players, which have one category in the columns \[1, 2\]. Got \[1\]"
    with pytest.raises(AbsentiaError, match=sentence) as partly_known:
        players.with_categorical([1])
    assert "Leave it out: the players know it." in str(partly_known.value)
    with pytest.raises(AbsentiaError, match=r"columns \[0\]. Got \[0, 3\] instead. Or make players whose") as more:
        players.with_categorical([[0, 3]])
    assert "Leave it out" not in str(more.value)
    x = torch.rand(4, 5)
    for call in (ab.explain, ab.MaskedModel):
        with pytest.raises(AbsentiaError, match=sentence):
            call(lambda rows: rows.sum(1), x, players=players, absence=0.0, categorical=[1])
    for call in (ab.audit, ab.cross_audit, ab.learn_baseline):
        with pytest.raises(AbsentiaError, match=sentence):
            call(lambda rows: rows.sum(1), x, players=players, categorical=[1])


def test_results_keep_the_categories_of_their_players(tmp_path):
    players = Players.features(3, categorical=[[0, 1]])
    data = torch.eye(3)
    model = torch.nn.Linear(3, 1)
    explained = ab.explain(model, data[:1], players=players, absence="median", data=data)
    options = ab.LearningOptions(steps=1, rows_per_step=64)
    learned = ab.learn_baseline(model, data, players=players, options=options)
    for result in (explained, learned):
        result.save(tmp_path / "saved")
        assert ab.load(tmp_path / "saved").players.categorical == ((0, 1),)
