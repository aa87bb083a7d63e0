"""The training that imputers and surrogates share."""

import torch
from torch import nn

import absentia as ab
from absentia import Players
from absentia.absences.training import MaskedRows, Standardise, TrainingEnd, fit, random_presence
from known_gaussian import draw

DATA = draw(1500)


def test_what_is_absent_is_read_as_zero_beside_what_is_present():
    read = Standardise((2,), torch.tensor([1.0, 0.0]), torch.tensor([2.0, 0.0]))
    assert read(torch.tensor([[2.0, torch.nan]])).tolist() == [[0.5, 0.0, 1.0, 0.0]]
    planes = Standardise((2, 1, 1), torch.zeros(2, 1, 1), torch.ones(2, 1, 1))
    assert planes(torch.tensor([[[[3.0]], [[torch.nan]]]])).flatten().tolist() == [3.0, 0.0, 0.5]


def test_sizes_of_random_coalitions_are_uniform():
    presence = random_presence(Players.features(4), 20_000, torch.Generator().manual_seed(0))
    sizes = presence.sum(1)
    assert torch.allclose(sizes.bincount() / 20_000, torch.full((5,), 0.2), atol=0.01)
    pairs = presence[sizes == 2].int() @ torch.tensor([1, 2, 4, 8], dtype=torch.int32)
    counts = pairs.bincount()[[3, 5, 6, 9, 10, 12]]
    assert (counts / counts.sum() - 1 / 6).abs().max() < 0.03


def test_held_out_rows_are_never_learned_from():
    rows = MaskedRows.draw(DATA.float(), None, 0, "a test")
    assert sorted(torch.cat([rows.training, rows.held_out]).tolist()) == list(range(1500))
    assert set(rows.repeated.tolist()) == set(rows.held_out.tolist())
    assert len(rows.presence) == len(rows.repeated) == 900


def test_training_drops_its_rate_and_ends_with_the_best_weights(monkeypatch):
    """A held-out loss that falls once: every rate is then given up after five checks."""
    network = torch.nn.Linear(1, 1)
    rows = MaskedRows.draw(torch.zeros(40, 1), None, 0, "a test")
    rates = []
    weights = []  # at each check
    adam = torch.optim.Adam

    def watched(parameters, **options):
        optimiser = adam(parameters, **options)
        optimiser.register_step_post_hook(lambda *_: rates.append(optimiser.param_groups[0]["lr"]))
        return optimiser

    def loss(batch, presence, generator):
        if network.training:
            return network.weight.square().expand(len(batch), 1).sum(1)
        check = len(weights)
        weights.append(network.weight.item())
        return torch.full((len(batch),), {0: 10.0, 1: 2.0}.get(check, 3.0))

    monkeypatch.setattr(torch.optim, "Adam", watched)
    record = fit(network, loss, rows, epochs=10_000, title="", show=False)
    assert len(weights) == 2 + 15
    assert (record.first_loss, record.loss, record.stopped) == (10.0, 2.0, TrainingEnd.PLATEAU)
    assert network.weight.item() == weights[1]
    assert sorted(set(rates), reverse=True) == [3e-3, 6e-4, 1e-4]
    assert rates == sorted(rates, reverse=True)
    assert record.epochs == len(rates) / 2


SIX_ROWS = torch.rand(6, 3, generator=torch.Generator().manual_seed(1))


def total(rows):
    return rows.sum(1)


def test_trained_absences_do_not_depend_on_torchs_default_type():
    def train():
        imputer = ab.train_imputer(SIX_ROWS, epochs=1, progress=False)
        surrogate = ab.train_surrogate(total, SIX_ROWS, epochs=1, progress=False, network=nn.Linear(6, 1))
        model = nn.Linear(3, 1)
        return [ab.explain(model, SIX_ROWS.to(model.weight), absence=one).outputs for one in (imputer, surrogate)]

    torch.manual_seed(0)
    usual = train()
    try:
        torch.set_default_dtype(torch.float64)
        assert [one.shape for one in train()] == [one.shape for one in usual]
    finally:
        torch.set_default_dtype(torch.float32)


FOUR_ROWS = torch.rand(4, 3, generator=torch.Generator().manual_seed(1))


def test_networks_are_trained_where_gradients_are_switched_off():
    with torch.no_grad():
        imputer = ab.train_imputer(FOUR_ROWS, epochs=1, progress=False)
        surrogate = ab.train_surrogate(nn.Linear(3, 2), FOUR_ROWS, epochs=1, progress=False)
    assert (imputer.record.epochs, surrogate.record.epochs) == (1, 1)
