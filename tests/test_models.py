from copy import deepcopy

import numpy as np
import pytest
import torch
from torch import nn

import absentia as ab
from absentia import AbsentiaError, from_numpy
from absentia.models.adapters import as_model, placement
from absentia.models.layers import layer_output
from absentia.models.outputs import are_probabilities, read_output
from absentia.runtime.batches import BatchRunner, rows_per_batch, try_rows
from absentia.runtime.modes import evaluation_mode
from absentia.runtime.precision import in_double
from known_games import cnn, mlp
from typechecker import unchecked


def test_numpy_callables_become_torch_ones():
    model = from_numpy(lambda rows: rows @ np.array([1.0, 2.0]))
    output = model(torch.tensor([[1.0, 1.0], [0.0, 3.0]], dtype=torch.float64))
    assert output.tolist() == [3.0, 6.0]


def test_probabilities_become_logits():
    p = np.array([[0.2, 0.8], [0.9, 0.1]])
    many = from_numpy(lambda rows: p, probabilities=True)(torch.zeros(2, 1))
    assert torch.allclose(many.softmax(1), torch.from_numpy(p))
    one = from_numpy(lambda rows: p[:, 1], probabilities=True)(torch.zeros(2, 1))
    assert torch.allclose(one.sigmoid(), torch.from_numpy(p[:, 1]))


def test_what_predicts_is_wrapped_and_rows_of_probabilities_are_known():
    class Estimator:
        def predict(self, rows):
            return rows.sum(1)

    assert as_model(Estimator())(torch.ones(2, 3)).tolist() == [3.0, 3.0]
    assert are_probabilities(torch.tensor([[0.3, 0.7]]))
    assert not are_probabilities(torch.tensor([[0.3, 0.9]]))


def test_a_numpy_callable_of_the_wrong_length_is_refused():
    with pytest.raises(
        AbsentiaError, match=r"model must return one row for each of the 3 input rows. Got shape \(2,\)"
    ):
        from_numpy(lambda rows: rows[:2, 0])(torch.zeros(3, 1))
    with pytest.raises(AbsentiaError, match="predict must be a callable"):
        unchecked(from_numpy)("predict")


class Moody(nn.Module):
    """Parts in different modes, parameters with different gradient flags, and a failure on demand."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)
        self.norm = nn.BatchNorm1d(2)
        self.drop = nn.Dropout(0.9)
        self.norm.eval()
        self.layer.bias.requires_grad_(False)
        self.seen = []

    def forward(self, rows):
        self.seen.append((self.training, self.norm.training, self.drop.training, self.layer.weight.requires_grad))
        if torch.isnan(rows).any():
            raise KeyError("as asked")
        return self.drop(self.norm(self.layer(rows)))


def state_of(model):
    return [part.training for part in model.modules()], [p.requires_grad for p in model.parameters()]


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("fails", [False, True])
def test_mode_and_flags_are_set_and_put_back_even_after_a_failure(gradient, fails):
    model = Moody().train()
    model.norm.eval()
    before = state_of(model)
    rows = torch.full((2, 2), torch.nan if fails else 1.0)
    with pytest.raises(KeyError) if fails else evaluation_mode(model), evaluation_mode(model, gradient):
        model(rows)
    assert model.seen == [(False, False, False, not gradient)]
    assert state_of(model) == before


def test_gradients_flow_to_the_input_only_when_asked_and_never_to_the_parameters():
    model = mlp(3)
    rows = torch.ones(1, 3, dtype=torch.float64, requires_grad=True)
    with evaluation_mode(model):
        assert not model(rows).requires_grad
    with evaluation_mode(model, gradient=True):
        model(rows).sum().backward()
    assert rows.grad is not None
    assert all(p.grad is None and p.requires_grad for p in model.parameters())


def test_a_bound_method_is_run_in_its_modules_mode():
    model = Moody().train()
    with evaluation_mode(model.forward):
        model.forward(torch.ones(2, 2))
    assert model.seen[0][0] is False
    assert model.training


def test_placement_is_the_models():
    assert placement(mlp(3), torch.zeros(1, 3)) == (torch.device("cpu"), torch.float64)
    assert placement(lambda rows: rows, torch.zeros(1, dtype=torch.float16))[1] == torch.float16
    assert placement(lambda rows: rows, torch.zeros(1, dtype=torch.int64))[1] == torch.float32


def test_integers_that_single_precision_would_round_are_doubles():
    times = 1_700_000_000 + torch.arange(4)[:, None]
    found = ab.explain(from_numpy(lambda rows: rows[:, 0] - 1.7e9), times, absence=0.0)
    assert found.outputs.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert placement(lambda rows: rows, times)[1] == torch.float64
    assert placement(nn.Linear(1, 1), times)[1] == torch.float32


def test_batches_fit_the_memory_given():
    model = nn.Sequential(nn.Linear(10, 1000), nn.ReLU(), nn.Linear(1000, 10))
    cpu = torch.device("cpu")
    output, size, *_ = try_rows(model, torch.zeros(2, 10))
    assert output.shape == (2, 10)
    assert size == 8000  # the largest layer takes 1000 numbers in and 1000 out
    assert not any(part._forward_hooks for part in model)
    batch = rows_per_batch(model, size, cpu, memory=2**20)
    assert batch * size <= 2**20 < 2 * batch * size
    assert rows_per_batch(model, size, cpu, memory=1) == 1
    _, assumed, *_ = try_rows(lambda rows: rows, torch.zeros(2, 10))
    assert rows_per_batch(lambda rows: rows, assumed, cpu, memory=2**20) > 1


def test_a_model_without_enough_memory_gets_smaller_batches_for_good():
    sizes = []

    def model(rows):
        sizes.append(len(rows))
        if len(rows) > 3:
            raise MemoryError
        return rows[:, 0]

    runner = BatchRunner(model, batch=16)
    rows = torch.arange(20.0)[:, None]
    assert torch.equal(runner(rows), rows[:, 0])
    assert sizes[:3] == [16, 8, 4]
    assert runner.batch == 2
    sizes.clear()
    runner(rows)
    assert set(sizes) == {2}


def test_the_cpu_allocators_error_counts_as_out_of_memory_and_others_do_not():
    def model(rows):
        if len(rows) > 1:
            raise RuntimeError("[enforce fail at alloc_cpu.cpp] . DefaultCPUAllocator: can't allocate memory")
        return rows[:, 0]

    assert len(BatchRunner(model, 8)(torch.zeros(5, 1))) == 5

    def broken(rows):
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    with pytest.raises(RuntimeError, match="mat1"):
        BatchRunner(broken, 8)(torch.zeros(5, 1))


def test_a_model_that_cannot_take_one_row_is_told_so():
    def model(rows):
        raise MemoryError

    with pytest.raises(AbsentiaError, match="The model runs out of memory with a single row"):
        BatchRunner(model, 4)(torch.zeros(2, 1))


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (lambda rows: rows.sum(), r"model must return one row for each of the 4 input rows. Got shape \(\)"),
        (lambda rows: rows[:3], "model must return one row for each of the 4 input rows"),
        (lambda rows: [], "model must return a tensor. Got list"),
        (lambda rows: {"a": rows, "b": rows}, r"a dict with one or with 'logits'. Got \['a', 'b'\]"),
        (lambda rows: rows.argmax(1), "model must return floating-point numbers. Got torch.int64"),
    ],
)
def test_outputs_of_the_wrong_kind_get_a_sentence(model, sentence):
    with pytest.raises(AbsentiaError, match=sentence):
        BatchRunner(model, 16)(torch.zeros(4, 2))


def test_the_output_of_a_layer():
    model = mlp(3)
    rows = torch.randn(4, 3, dtype=torch.float64)
    assert torch.equal(layer_output(model, "3")(rows), model[:4](rows))
    assert not model[3]._forward_hooks
    with pytest.raises(AbsentiaError, match=r"layer must be one of 0, 1, 2, 3, 4. Got 'last'"):
        layer_output(model, "last")
    with pytest.raises(AbsentiaError, match=r"model must be an nn.Module"):
        layer_output(lambda rows: rows, "0")


def test_the_output_of_a_layer_is_not_what_a_later_layer_makes_of_it():
    model, rows = nn.Sequential(nn.Linear(3, 8), nn.ReLU(inplace=True)), torch.randn(4, 3)
    assert torch.equal(layer_output(model, "0")(rows), model[0](rows))


def test_a_model_may_return_the_same_memory_again():
    kept = torch.zeros(4)

    def model(rows):
        return kept[: len(rows)].copy_(rows.sum(1))

    rows = torch.arange(20.0).reshape(10, 2)
    assert torch.equal(BatchRunner(model, 4)(rows), rows.sum(1))


def test_logits_are_found_in_a_dict():
    output, key = read_output({"logits": torch.zeros(1, 2), "hidden": torch.ones(1, 8)})
    assert (output.tolist(), key) == ([[0.0, 0.0]], "logits")


@pytest.mark.parametrize(
    ("answer", "got"),
    [
        (lambda rows: rows.sum(1) + 1j, "complex numbers"),
        (lambda rows: np.ma.masked_less(rows.sum(1), 9), "a masked array"),
    ],
)
def test_complex_and_missing_outputs_are_refused(answer, got):
    with pytest.raises(AbsentiaError, match=f"model must return real numbers, none of them missing. Got {got}"):
        from_numpy(answer)(torch.ones(2, 3))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_compiled_network_is_explained():
    network = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
    found, expected = (
        ab.explain(one, torch.ones(2, 3), absence=0.0).outputs
        for one in (torch.compile(network, backend="eager"), network)
    )
    assert torch.allclose(found, expected)


class Sequences(nn.Module):
    """Layers with weights in lists, fused functions, constants, and types of their own."""

    def __init__(self):
        super().__init__()
        self.lstm, self.gru = nn.LSTM(1, 8, batch_first=True), nn.GRU(8, 8, batch_first=True)
        self.attend = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.scale, self.norm = torch.linspace(0.5, 1.5, 8), nn.LayerNorm(8)

    def forward(self, rows):
        hidden = self.attend(self.gru(self.lstm(rows[..., None])[0])[0]) * self.scale.to(rows.dtype)
        hidden = self.norm(hidden).float().exp().type_as(hidden)
        found = torch.zeros(len(rows), 2, dtype=self.norm.weight.dtype)
        found[:, 0] = hidden.mean((1, 2))
        found[:, 1].add_(nn.functional.softmax(hidden, -1, dtype=torch.float32).amax((1, 2)))
        return found


@pytest.mark.parametrize("lower", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("model", "shape"), [(mlp(6), (6,)), (cnn(), (1, 8, 8)), (Sequences(), (6,))])
def test_a_model_runs_in_double_precision_and_keeps_its_weights(model, shape, lower):
    model, rows = deepcopy(model).to(lower).eval(), torch.rand(5, *shape).to(lower)
    before = deepcopy(model.state_dict())
    with evaluation_mode(model):
        found, usual = in_double(model, rows), model(rows)
        assert found.dtype == torch.float64
        assert 0 < float((found - usual).abs().max()) < 30 * torch.finfo(lower).eps
        if not isinstance(model, Sequences):  # which has types of its own
            assert torch.equal(found, deepcopy(model).double()(rows.double()))
    assert all(torch.equal(one, model.state_dict()[name]) for name, one in before.items())
    assert usual.dtype == lower


def test_a_compiled_model_is_not_compiled_once_more():
    compiled = torch.compile(nn.Linear(2, 1), backend="eager")
    assert in_double(lambda rows: compiled(rows), torch.zeros(3, 2)).dtype == torch.float32
