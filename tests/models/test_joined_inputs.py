"""Several inputs of a model as one."""

import pytest
import torch
from torch import nn

import absentia as ab
from absentia import AbsentiaError, JoinedInputs, Players


class TextAndNumbers(nn.Module):
    """Tokens by an embedding, and numbers, by positions or by names."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.embedding = nn.Embedding(9, 3)
        self.layer = nn.Linear(3 + 2, 2)

    def forward(self, tokens, numbers):
        return self.layer(torch.cat([self.embedding(tokens).mean(1), numbers], dim=1))


TOKENS = torch.randint(9, (12, 4), generator=torch.Generator().manual_seed(0))
NUMBERS = torch.randn(12, 2, generator=torch.Generator().manual_seed(1))
PLAYERS = (Players.tokens(["a", "b", "c", "d"]), Players.features(["age", "mass"]))


@pytest.mark.parametrize("by_name", [False, True])
def test_values_are_those_of_the_model_called_by_hand(by_name):
    model = TextAndNumbers()
    inputs = (TOKENS, NUMBERS)
    players = PLAYERS
    if by_name:
        inputs = {"tokens": TOKENS, "numbers": NUMBERS}
        players = {"tokens": PLAYERS[0], "numbers": PLAYERS[1]}
    joined = JoinedInputs(model, inputs, players)
    assert joined.players.names == ("a", "b", "c", "d", "age", "mass")
    game = ab.MaskedModel(joined, joined.x, 1, absence=0.0, players=joined.players)
    coalition = torch.tensor([[True, False, True, True, False, True]])
    expected = model(TOKENS * torch.tensor([1, 0, 1, 1]), NUMBERS * torch.tensor([0.0, 1.0]))
    assert torch.allclose(game(coalition)[:, 0], expected[:, 1] - expected[:, 0], atol=1e-6)
    assert torch.equal(joined.pack(inputs), joined.x)


@pytest.mark.slow
def test_inputs_that_are_joined_can_be_audited_and_learned_from():
    joined = JoinedInputs(TextAndNumbers(), (TOKENS, NUMBERS), PLAYERS)
    y = torch.arange(12) % 2
    held = joined.players.labels < 4  # tokens keep their start
    options = ab.LearningOptions(steps=3, rows_per_step=128, held=held.int() - 1)
    learned = ab.learn_baseline(joined, joined.x, y, players=joined.players, options=options)
    audit = ab.audit(joined, joined.x, y, {"learned": learned}, players=joined.players, draws=1)
    assert audit.columns()["strength"].isfinite().all()


def test_categories_are_kept_at_their_places():
    cities = Players.features(["city", "age"], {"city": ["Bern", "Oslo"]})
    codes = Players.features(["red", "green"], categorical=[["red", "green"]])
    joined = JoinedInputs(TextAndNumbers(), (TOKENS, NUMBERS), (PLAYERS[0], cities))
    assert joined.players.categorical == ((4,),)
    assert joined.players.categories == ((), (), (), (), ("Bern", "Oslo"), ())
    both = JoinedInputs(lambda a, b: (a + b).sum(1), (NUMBERS, NUMBERS), (cities, codes))
    assert both.players.categorical == ((0,), (2, 3))


def test_names_that_two_inputs_share_are_told_apart():
    joined = JoinedInputs(lambda a, b: (a + b).sum(1), (NUMBERS, NUMBERS))
    assert joined.players.names == ("input 0 x0", "input 0 x1", "input 1 x0", "input 1 x1")
    assert joined.x.shape == (12, 4)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: JoinedInputs(len, NUMBERS), "inputs must be a tuple or a mapping of tensors. Got Tensor"),
        (lambda: JoinedInputs(len, ()), "inputs must be a tuple or a mapping of tensors"),
        (lambda: JoinedInputs(len, (NUMBERS,), 3), "players must be a tuple or a mapping of Players. Got int"),
        (
            lambda: JoinedInputs(len, (torch.zeros(2, 1, 3),)),
            r"players must be Players of shape \(1, 3\) for input 0",
        ),
        (
            lambda: JoinedInputs(len, (NUMBERS, NUMBERS[:3])),
            "inputs must have the same number of samples. Got 12 of 0, 3 of 1",
        ),
        (
            lambda: JoinedInputs(len, (NUMBERS,)).pack((TOKENS,)),
            r"inputs must have samples of the shapes {0: \(2,\)}. Got {0: \(4,\)}",
        ),
    ],
)
def test_a_mistake_gets_a_sentence(make, sentence):
    with pytest.raises(AbsentiaError, match=sentence):
        make()
