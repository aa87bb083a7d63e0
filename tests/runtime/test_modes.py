"""Models run in evaluation mode, and are left as they were."""

import functools
import itertools
import threading
import types
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import nn

import absentia as ab
from absentia import AbsentiaError
from absentia.learning import LearningOptions
from absentia.runtime.modes import evaluation_mode
from known_games import mlp


@dataclass(frozen=True)
class Seen:
    """The modes of a model and its parts, and whether its weights have gradients, as it runs."""

    training: bool
    norm: bool
    dropout: bool
    requires_grad: bool


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
        self.seen.append(Seen(self.training, self.norm.training, self.drop.training, self.layer.weight.requires_grad))
        if torch.isnan(rows).any():
            raise KeyError("as asked")
        return self.drop(self.norm(self.layer(rows)))


@dataclass(frozen=True)
class State:
    """What running a model must not change."""

    training: list[bool]  # of each part
    requires_grad: list[bool]  # of each parameter
    hooks: list[int]  # of each part
    tensors: dict[str, list]


def state_of(model):
    return State(
        training=[part.training for part in model.modules()],
        requires_grad=[weight.requires_grad for weight in model.parameters()],
        hooks=[len(part._forward_hooks) for part in model.modules()],
        tensors={name: tensor.tolist() for name, tensor in model.state_dict().items()},
    )


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("fails", [False, True])
def test_mode_and_flags_are_set_and_put_back_even_after_a_failure(gradient, fails):
    model = Moody().train()
    model.norm.eval()
    before = state_of(model)
    if fails:
        with pytest.raises(KeyError), evaluation_mode(model, gradient):
            model(torch.full((2, 2), torch.nan))
    else:
        with evaluation_mode(model, gradient):
            model(torch.ones(2, 2))
    assert model.seen == [Seen(training=False, norm=False, dropout=False, requires_grad=not gradient)]
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
    assert model.seen[0].training is False
    assert model.training


holder = types.SimpleNamespace(network=lambda rows: rows.sum(1))
network = Moody().train()  # which has the name of an attribute that a model uses


def test_a_global_that_only_shares_its_name_with_an_attribute_is_left_alone():
    def model(rows):
        return holder.network(rows)

    with evaluation_mode(model):
        assert network.training


def test_a_global_that_a_nested_function_loads_is_run_in_evaluation_mode():
    def model(rows):
        return torch.cat([network(row[None]) for row in rows])

    with evaluation_mode(model):
        assert not network.training
    assert network.training


FOUR_ROWS = torch.rand(4, 3, generator=torch.Generator().manual_seed(1))


def networks():
    """Networks in train mode, whose evaluation differs from their training."""
    torch.manual_seed(0)
    dropout = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.5), nn.ReLU(), nn.Linear(8, 1))
    norm = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))
    return {"dropout": dropout, "norm": norm}


def explain(model, x=FOUR_ROWS):
    return ab.explain(model, x, absence=0.0).interactions.effects


def features(model, x=FOUR_ROWS):
    game = ab.MaskedModel(model, x, absence=0.0, readout=ab.Features("0"))
    return game(ab.enumerate_coalitions(3))


def gradients(model, x=FOUR_ROWS):
    stand_ins = torch.zeros(4, 3, requires_grad=True)
    game = ab.MaskedModel(model, x, absence=ab.OwnBaselines(stand_ins), gradient=True)
    game(ab.enumerate_coalitions(3)).sum().backward()
    return stand_ins.grad


def work_in_threads(work, model, samples):
    """Return the results of a thread for each of several samples. All begin at the same moment."""
    start = threading.Barrier(len(samples))

    def run(x):
        start.wait()
        return work(model, x)

    with ThreadPoolExecutor(len(samples)) as threads:
        return list(threads.map(run, samples))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dropout", "norm"])
@pytest.mark.parametrize("work", [explain, features, gradients])
def test_two_threads_on_one_model_find_what_one_finds_and_leave_the_model_as_it_was(name, work):
    model = networks()[name]
    # Each thread has its own samples, so that it goes wrong if it sees those of the other.
    samples = [FOUR_ROWS, FOUR_ROWS.flip(0, 1) + 1]
    expected = [work(model, x) for x in samples]
    before = state_of(model)
    for _ in range(34):
        results = work_in_threads(work, model, samples)
        assert all(torch.equal(result, wanted) for result, wanted in zip(results, expected, strict=True))
        assert state_of(model) == before


# Where networks are hidden: in another file, and in a variable.
hiding_place = types.ModuleType("hiding_place")
NETWORKS = []


class Holder:
    """An object that holds a network in a list in a dict."""

    def __init__(self, model):
        self._parts = {"inner": [model]}

    def __call__(self, rows):
        return self._parts["inner"][0](rows)

    def predict_rows(self, rows):
        return self(rows)


class ByMethod:
    """An object whose method finds the network in another file."""

    def __call__(self, rows):
        return self.run(rows)

    def run(self, rows):
        return hiding_place.network(rows)


class Inherited(ByMethod):
    pass


class OfTheClass:
    """An object whose class holds the network."""

    def __call__(self, rows):
        return self.networks[0](rows)


class Private(nn.Module):
    """A module that holds a network in a list, which torch does not search."""

    def __init__(self, model):
        super().__init__()
        self._networks = [model]

    def forward(self, rows):
        return self._networks[0](rows)


class Global(nn.Module):
    """A module that finds the network in another file."""

    def forward(self, rows):
        return hiding_place.network(rows)


class Weak(nn.Module):
    """A module with a weak reference to the network."""

    def __init__(self, model):
        super().__init__()
        self.network = weakref.ref(model)

    def forward(self, rows):
        return self.network()(rows)


def in_function_of_function(model):
    def call(rows):
        return model(rows)

    return lambda rows: call(rows) + 0


def in_default(model):
    return lambda rows, model=model: model(rows)


def in_partial(model):
    return functools.partial(lambda model, rows: model(rows), model)


def in_keyword(model):
    return lambda rows, *, inner={"model": model}: inner["model"](rows)


def in_closure_of_class(model):
    def call(rows):
        return model(rows)

    class Slotless:
        def __call__(self, rows):
            return call(rows)

    return Slotless()


def behind_numpy(model):
    return ab.from_numpy(lambda rows: model(torch.from_numpy(rows)).detach().numpy())


def in_another_file(model):
    hiding_place.network = model
    return lambda rows: hiding_place.network(rows)


def in_name_of_name(model):
    hiding_place.network = model
    return lambda rows: getattr(hiding_place, "net" + "work")(rows)


def in_nested_function(model):
    NETWORKS[:] = [model]

    def call_outer(rows):
        def call_inner(inner_rows):
            return NETWORKS[0](inner_rows)

        return call_inner(rows)

    return call_outer


def in_comprehension(model):
    NETWORKS[:] = [model]
    return lambda rows: torch.stack([network(rows) for network in [NETWORKS[k] for k in range(1)]])[0]


def in_method(model):
    hiding_place.network = model
    return ByMethod()


def in_inherited_method(model):
    hiding_place.network = model
    return Inherited()


def in_class_attribute(model):
    OfTheClass.networks = [model]
    return OfTheClass()


def in_module_that_names_it(model):
    hiding_place.network = model
    return Global()


def behind_joined_inputs(model):
    return ab.JoinedInputs(lambda rows: model(rows), [FOUR_ROWS])


def in_weak_reference(model):
    reference = weakref.ref(model)
    return lambda rows: reference()(rows)


def in_array(model):
    array = np.array([model, None], dtype=object)
    return lambda rows: array[0](rows)


def in_long_list(model):
    items = [[number] for number in range(999)]
    items[500] = [model]
    return lambda rows: items[500][0](rows)


def in_generator(model):
    endless = itertools.cycle([model])
    return lambda rows: next(endless)(rows)


# Ways to hold a module that are searched.
SEARCHED = {
    "lambda": lambda model: lambda rows: model(rows),
    "function of a function": in_function_of_function,
    "default": in_default,
    "partial": in_partial,
    "keyword": in_keyword,
    "object": Holder,
    "closure of a class": in_closure_of_class,
    "method": lambda model: Holder(model).predict_rows,
    "numpy": behind_numpy,
    "nested function": in_nested_function,
    "comprehension": in_comprehension,
    "private attribute": Private,
    "joined": behind_joined_inputs,
    "its method": lambda model: lambda rows: model.forward(rows),
}

# Ways to hold a module that are not searched. Their outputs differ for the same sample, which is noticed.
NOT_SEARCHED = {
    "module of functions": in_another_file,
    "method of a method": in_method,
    "inherited method": in_inherited_method,
    "attribute of a class": in_class_attribute,
    "module that names it": in_module_that_names_it,
    "weak reference": in_weak_reference,
    "weak reference of a module": Weak,
    "array of objects": in_array,
    "beyond what is searched": in_long_list,
    "generator": in_generator,
    "name of a name": in_name_of_name,
}


@pytest.mark.parametrize("way", sorted(SEARCHED))
@pytest.mark.parametrize("name", ["dropout", "norm"])
def test_a_module_in_train_mode_is_switched_where_it_can_be_reached(name, way):
    model = networks()[name]
    expected = explain(model)
    before = state_of(model)
    hidden = SEARCHED[way](model)
    assert torch.allclose(explain(hidden), expected, atol=1e-6)
    assert state_of(model) == before


@pytest.mark.parametrize("way", sorted(NOT_SEARCHED))
@pytest.mark.parametrize("name", ["dropout", "norm"])
def test_a_hidden_module_in_train_mode_is_noticed_by_its_outputs(name, way):
    model = networks()[name]
    message = "model must return the same output for the same sample.*Put it into evaluation mode"
    with pytest.raises(AbsentiaError, match=message):
        explain(NOT_SEARCHED[way](model))
    model.eval()
    assert torch.allclose(explain(NOT_SEARCHED[way](model)), explain(model), atol=1e-6)


def test_modules_of_another_thread_stay_in_train_mode():
    own = networks()["dropout"]
    other = networks()["norm"]
    reference_to_other = weakref.ref(other)  # which is not searched, so that only its thread tells it apart
    modes = []

    def run_other():
        network = reference_to_other()
        network(FOUR_ROWS)
        modes.append(network.training)

    def model(rows):
        thread = threading.Thread(target=run_other)
        thread.start()
        thread.join()
        return own(rows)

    explain(model)
    assert set(modes) == {True}
    with pytest.raises(AbsentiaError, match="The model fails"):
        explain(lambda rows: own(rows[:, :2]))
    assert own.training
    assert not torch.nn.modules.module._global_forward_pre_hooks


class Own(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, rows):
        return self.model(rows)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", ["module", "lambda"])
def test_a_compiled_model_is_not_compiled_again_for_each_call(way):
    graphs = []

    def backend(graph, _inputs):
        graphs.append(graph)
        return graph.forward

    model = torch.compile(Own(networks()["dropout"]), backend=backend)
    ways = {"module": model, "lambda": lambda rows: model(rows)}
    explain(ways[way])
    graphs_of_first_call = len(graphs)
    explain(ways[way])
    assert len(graphs) == graphs_of_first_call


def test_learning_through_a_function_leaves_no_gradients_in_the_model():
    model = networks()["dropout"]
    ab.learn_baseline(lambda rows: model(rows), FOUR_ROWS, options=LearningOptions(steps=1))
    assert all(weight.grad is None and weight.requires_grad for weight in model.parameters())


def test_a_model_made_in_inference_mode_is_explained_and_learning_from_it_says_why_it_cannot():
    with torch.inference_mode():
        model = nn.Linear(4, 2)
    x = torch.rand(20, 4)
    assert ab.explain(model, x[:1], 0, absence=0.0).shapley.values.isfinite().all()
    with pytest.raises(ab.AbsentiaError, match=r"model must be made outside of torch\.inference_mode"):
        ab.learn_baseline(model, x, (x.sum(1) > 2).long())
    assert all(weight.requires_grad for weight in model.parameters())
