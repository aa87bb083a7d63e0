"""No silent error: what users hand in is not changed, and what would give wrong numbers is refused."""

import functools
import itertools
import subprocess
import sys
import threading
import types
import weakref

import joblib
import numpy as np
import pandas as pd
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import absentia as ab
from absentia import AbsentiaError
from absentia.data import column_groups
from absentia.learning import LearningOptions
from absentia.plots.learned_entries import entries_of
from absentia.runtime.threads import quickest_threads

X = torch.rand(4, 3, generator=torch.Generator().manual_seed(1))


def networks():
    """Networks in train mode, whose evaluation differs from their training."""
    torch.manual_seed(0)
    dropout = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.5), nn.ReLU(), nn.Linear(8, 1))
    norm = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))
    return {"dropout": dropout, "norm": norm}


def state(model):
    tensors = {name: value.clone() for name, value in model.state_dict().items()}
    flags = [part.training for part in model.modules()] + [one.requires_grad for one in model.parameters()]
    return tensors, flags, [len(part._forward_hooks) for part in model.modules()]


def assert_same_state(before, after):
    assert all(torch.equal(before[0][name], after[0][name]) for name in before[0])
    assert before[1:] == after[1:]


def explain(model, x=X):
    return ab.explain(model, x, absence=0.0).interactions.effects


def features(model, x=X):
    game = ab.MaskedModel(model, x, absence=0.0, readout=ab.Features("0"))
    return game(ab.enumerate_coalitions(3))


def gradients(model, x=X):
    stand_ins = torch.zeros(4, 3, requires_grad=True)
    game = ab.MaskedModel(model, x, absence=ab.OwnBaselines(stand_ins), gradient=True)
    game(ab.enumerate_coalitions(3)).sum().backward()
    return stand_ins.grad


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dropout", "norm"])
@pytest.mark.parametrize("work", [explain, features, gradients])
def test_two_threads_on_one_model_find_what_one_finds_and_leave_the_model_as_it_was(name, work):
    model = networks()[name]
    samples = (X, X.flip(0, 1) + 1)  # each thread has its own, so that what it sees of the other's is wrong
    expected, before = [work(model, x) for x in samples], state(model)
    for _ in range(34):
        found = {}
        start = threading.Barrier(2)

        def run(number, found=found, start=start):
            start.wait()
            found[number] = work(model, samples[number])

        threads = [threading.Thread(target=run, args=(number,)) for number in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert all(torch.equal(found[number], expected[number]) for number in range(2))
        assert_same_state(before, state(model))


# Where networks are hidden: in another file, and in a variable.
hiding_place, NETWORKS = types.ModuleType("hiding_place"), []


class Holder:
    def __init__(self, model):
        self._parts = {"inner": [model]}

    def __call__(self, rows):
        return self._parts["inner"][0](rows)

    def predict_rows(self, rows):
        return self(rows)


class ByMethod:
    def __call__(self, rows):
        return self.run(rows)

    def run(self, rows):
        return hiding_place.network(rows)


class Inherited(ByMethod):
    pass


class OfTheClass:
    def __call__(self, rows):
        return self.networks[0](rows)


class Private(nn.Module):
    def __init__(self, model):
        super().__init__()
        self._networks = [model]

    def forward(self, rows):
        return self._networks[0](rows)


class Global(nn.Module):
    def forward(self, rows):
        return hiding_place.network(rows)


class Weak(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.network = weakref.ref(model)

    def forward(self, rows):
        return self.network()(rows)


def by_nested_function(rows):
    def call(some):
        return NETWORKS[0](some)

    return call(rows)


def hidden(model):
    hiding_place.network, NETWORKS[:], OfTheClass.networks = model, [model], [model]
    weak, array, endless = weakref.ref(model), np.array([model, None], dtype=object), itertools.cycle([model])
    many = [[model] if number == 500 else [number] for number in range(999)]

    def call(rows):
        return model(rows)

    class Slotless:
        def __call__(self, rows):
            return call(rows)

    return {
        "lambda": lambda rows: model(rows),
        "function of a function": lambda rows: call(rows) + 0,
        "default": lambda rows, model=model: model(rows),
        "partial": functools.partial(lambda model, rows: model(rows), model),
        "keyword": lambda rows, *, inner={"model": model}: inner["model"](rows),
        "object": Holder(model),
        "closure of a class": Slotless(),
        "method": Holder(model).predict_rows,
        "numpy": ab.from_numpy(lambda rows: model(torch.from_numpy(rows)).detach().numpy()),
        "module of functions": lambda rows: hiding_place.network(rows),
        "nested function": by_nested_function,
        "comprehension": lambda rows: torch.stack([one(rows) for one in [NETWORKS[k] for k in range(1)]])[0],
        "method of a method": ByMethod(),
        "inherited method": Inherited(),
        "attribute of a class": OfTheClass(),
        "private attribute": Private(model),
        "module that names it": Global(),
        "joined": ab.JoinedInputs(lambda one: model(one), [X]),
        "weak reference": lambda rows: weak()(rows),
        "weak reference of a module": Weak(model),
        "array of objects": lambda rows: array[0](rows),
        "beyond what is searched": lambda rows: many[500][0](rows),
        "generator": lambda rows: next(endless)(rows),
        "name of a name": lambda rows: getattr(hiding_place, "net" + "work")(rows),
        "its method": lambda rows: model.forward(rows),
    }


# Ways to hold a module that are not searched. Their outputs differ for the same sample, which is noticed.
NOT_SEARCHED = {
    "module of functions",
    "method of a method",
    "inherited method",
    "attribute of a class",
    "module that names it",
    "weak reference",
    "weak reference of a module",
    "array of objects",
    "beyond what is searched",
    "generator",
    "name of a name",
}


@pytest.mark.parametrize("way", sorted(set(hidden(nn.Linear(3, 1))) - NOT_SEARCHED))
@pytest.mark.parametrize("name", ["dropout", "norm"])
def test_a_module_in_train_mode_is_switched_where_it_can_be_reached(name, way):
    model = networks()[name]
    expected, before = explain(model), state(model)
    assert torch.allclose(explain(hidden(model)[way]), expected, atol=1e-6)
    assert_same_state(before, state(model))


@pytest.mark.parametrize("way", sorted(NOT_SEARCHED))
@pytest.mark.parametrize("name", ["dropout", "norm"])
def test_a_hidden_module_in_train_mode_is_noticed_by_its_outputs(name, way):
    model = networks()[name]
    message = "model must return the same for the same sample.*Put it into evaluation mode"
    with pytest.raises(AbsentiaError, match=message):
        explain(hidden(model)[way])
    assert torch.allclose(explain(hidden(model.eval())[way]), explain(model), atol=1e-6)


def test_modules_of_another_thread_stay_in_train_mode():
    own, other = networks()["dropout"], networks()["norm"]
    others, modes = weakref.ref(other), []

    def model(rows):
        thread = threading.Thread(target=lambda: modes.append((others()(X), others().training)[1]))
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
    compiled = {"module": model, "lambda": lambda rows: model(rows)}[way]
    explain(compiled)
    before = len(graphs)
    explain(compiled)
    assert len(graphs) == before


def test_learning_through_a_function_leaves_no_gradients_in_the_model():
    model = networks()["dropout"]
    ab.learn_baseline(lambda rows: model(rows), X, options=LearningOptions(steps=1))
    assert all(weight.grad is None and weight.requires_grad for weight in model.parameters())


class Unsteady:
    """A model that returns something else from some call on."""

    def __init__(self, after=10**9):
        self.calls, self.after = 0, after

    def __call__(self, rows):
        self.calls += 1
        return rows.sum(1) + (rows[:, 0] > 0.99) * float(self.calls > self.after)


def test_a_model_that_is_not_deterministic_is_refused_by_every_function():
    def model(rows):
        return rows.sum(1) + torch.rand(len(rows))

    for run in (
        lambda: explain(model),
        lambda: ab.explain(model, X, absence=0.0, evaluations=8),
        lambda: ab.learn_baseline(model, X),
        lambda: ab.audit(model, X, absences={"zero": ab.Baseline(0.0)}),
    ):
        with pytest.raises(
            AbsentiaError, match=r"the same for the same sample. Got results for sample \d+ that differ"
        ):
            run()


@pytest.mark.parametrize("absence", [ab.Baseline(0.0), ab.NearestNeighbours(torch.rand(9, 12), neighbours=2)])
@pytest.mark.parametrize("evaluations", [None, 100])
def test_a_model_that_changes_on_the_way_is_refused_with_the_sample_and_the_difference(absence, evaluations):
    x = torch.cat([torch.ones(3, 1), torch.zeros(3, 11)], 1)
    steady = Unsteady()
    ab.explain(steady, x, absence=absence, evaluations=evaluations)
    with pytest.raises(AbsentiaError, match=r"results for sample 2 that differ by 1 instead. Put it into evaluation"):
        ab.explain(Unsteady(steady.calls - 1), x, absence=absence, evaluations=evaluations)


@pytest.mark.parametrize("work", [explain, lambda model: ab.learn_baseline(model, X)])
def test_random_outputs_are_refused_also_where_they_are_small_beside_an_offset(work):
    with pytest.raises(AbsentiaError, match="the same for the same sample"):
        work(lambda rows: 1000 + rows.prod(1) + 2 * torch.randn(len(rows)))


class Drifting:
    """A model that changes for good at some call."""

    def __init__(self, after=10**9):
        self.calls, self.after = 0, after

    def __call__(self, rows):
        self.calls += 1
        return rows.prod(1) * (1.0 if self.calls <= self.after else 3.0)


def at_workers(model):
    with joblib.parallel_config("threading", n_jobs=2):
        return ab.explain(model, X, absence=0.0, batch_size=2)


@pytest.mark.parametrize(
    "work",
    [
        lambda model: ab.audit(model, X, absences=["zero", "mean"]),
        lambda model: ab.cross_audit(model, X, absences=["zero", "mean"]),
        lambda model: ab.learn_baseline(model, X, options=LearningOptions(steps=2)),
        lambda model: ab.explain(model, torch.rand(2, 12), absence=0.0, evaluations=100, batch_size=8),
        at_workers,
    ],
)
def test_a_model_that_drifts_is_refused_by_every_function(work):
    steady = Drifting()
    work(steady)
    with pytest.raises(AbsentiaError, match="the same for the same sample"):
        work(Drifting(5 if work is at_workers else steady.calls // 2))


def test_rounding_errors_of_low_precision_are_no_change_of_the_model():
    torch.manual_seed(0)
    layers = [layer for _ in range(6) for layer in (nn.Linear(10, 10), nn.ReLU())]
    for kind in (torch.bfloat16, torch.float16):
        network = nn.Sequential(*layers, nn.Linear(10, 2)).to(kind)
        ab.explain(network, torch.rand(3, 10), 0, absence=0.0)


@pytest.mark.slow
def test_players_of_the_same_name_are_told_apart_by_their_number(tmp_path):
    x = torch.rand(64, 3, generator=torch.Generator().manual_seed(0)).double()
    options = LearningOptions(steps=5)
    model = lambda rows: (rows[:, 1] - 0.25) * (rows[:, 2] - 0.5)  # noqa: E731
    named, same = (
        ab.learn_baseline(model, pd.DataFrame(x.numpy(), columns=names), options=options, loss="interactions")
        for names in (["a", "b", "c"], ["a", "a", "c"])
    )
    assert torch.equal(named.values, same.values)
    assert (named.record.undetermined, same.record.undetermined) == (("a",), ("a",))
    assert same.to_frame()["undetermined"].tolist() == [True, False, False]
    assert entries_of(same, most=10).undetermined == [True, False, False]
    table = pd.DataFrame(x[:8].numpy(), columns=["a", "a", "c"])
    each = ab.learn_baseline(model, table, options=options, loss="interactions", share="sample")
    assert (each.record.undetermined, each.to_frame()["undetermined"].tolist()) == (("a",), [True, False, False] * 8)
    each.save(tmp_path / "each.ab")
    assert ab.load(tmp_path / "each.ab").undetermined == [True, False, False]
    with pytest.raises(AbsentiaError, match="'a', the name of two players"):
        ab.Players.features(["a", "a", "c"]).only(["a"])
    with pytest.raises(AbsentiaError, match="'a', the name of two features"):
        ab.Players.groups({"g": ["a"]}, ["a", "a", "c"])


def test_categories_that_share_a_column_are_refused():
    data = torch.rand(32, 3).round()
    for make in (
        lambda: ab.Baseline.median(data, categorical=[[0, 1], [1, 2]]),
        lambda: ab.learn_baseline(lambda rows: rows.sum(1), data, categorical=[[0, 1], [1, 2]]),
        lambda: ab.audit(lambda rows: rows.sum(1), data, absences={"zero": ab.Baseline(0.0)}, categorical=[1, 1]),
    ):
        with pytest.raises(
            AbsentiaError, match=r"categorical must name each column once. Got column 1 twice instead"
        ):
            make()


@pytest.mark.parametrize("values", [[1e308, -1e308, 1e308, -1e308], [0.0, 8e307, -8e307, 1e308]])
def test_values_whose_sums_would_be_infinite_are_refused(values):
    with pytest.raises(AbsentiaError, match=r"values must be small enough for sums over all coalitions. Got 1e\+308"):
        ab.ValueTable(values)


def test_an_audit_of_values_whose_sums_would_be_infinite_is_refused():
    with pytest.raises(AbsentiaError, match="model must return values small enough for sums over all coalitions"):
        ab.audit(lambda rows: 1e307 * (rows - 0.4).prod(1), 2 * X.double(), absences=["zero", "mean"])


@pytest.mark.parametrize("value", [1.5e307, float("nan")])
def test_sampled_values_that_are_not_finite_are_refused(value):
    class Large:
        samples, names = 1, tuple("abcdefghijkl")

        def __call__(self, coalitions):
            return value * (coalitions.double() - 0.5).sum(1)[None]

    with pytest.raises(
        AbsentiaError, match=r"values of the game must be (small enough for sums over coalitions|finite)"
    ):
        ab.shapley(Large(), evaluations=100)
    if value != value:
        with pytest.raises(AbsentiaError, match="values of the game must be finite"):
            ab.context_map(Large())


def test_numbers_that_are_not_whole_are_not_rounded_without_a_word():
    embedding = nn.Embedding(5, 2)
    tokens, players = torch.tensor([[1, 2]]), ab.Players.tokens(2)

    def model(rows):
        return embedding(rows).sum((1, 2))

    for run, sentence in (
        (lambda: column_groups([0.5], 3), "categorical must name columns from 0 to 2. Got 0.5"),
        (
            lambda: ab.explain(model, tokens, players=players, absence=ab.Noise(low=0.5, high=2.5)),
            "low and high must hold whole numbers for integer inputs. Got 0.5",
        ),
    ):
        with pytest.raises(AbsentiaError, match=sentence):
            run()


def test_networks_are_trained_where_gradients_are_switched_off():
    with torch.no_grad():
        imputer = ab.train_imputer(X, epochs=1, progress=False)
        surrogate = ab.train_surrogate(nn.Linear(3, 2), X, epochs=1, progress=False)
    assert (imputer.record.epochs, surrogate.record.epochs) == (1, 1)


def test_results_share_no_memory_with_what_users_hand_in_or_models_return():
    x, buffer, out = X.clone(), torch.empty(99), []

    def reused(rows):
        torch.sum(rows, 1, out=buffer[: len(rows)])
        return buffer[: len(rows)]

    for batch_size in (None, 2):
        game = ab.MaskedModel(reused, x, absence=0.0, batch_size=batch_size)
        out.append(game(ab.enumerate_coalitions(3)))
        assert torch.equal(ab.explain(reused, x, absence=0.0, batch_size=batch_size).x, X)
    buffer.fill_(torch.nan)
    expected = ab.enumerate_coalitions(3).float() @ X.T
    assert all(torch.allclose(found, expected.T) for found in out)
    labels = torch.tensor([0, 1, 0])
    players = ab.Players.segments(labels)
    explanation = ab.explain(reused, x, players=players, absence=0.0)
    effects, outputs = explanation.interactions.effects.clone(), explanation.outputs.clone()
    x.fill_(9.0)
    labels.fill_(1)
    assert torch.equal(explanation.x, X)
    assert torch.equal(explanation.interactions.effects, effects)
    assert torch.equal(explanation.outputs, outputs)
    assert players.labels.tolist() == explanation.players.labels.tolist() == [0, 1, 0]


def test_batches_of_a_loader_may_hold_the_inputs_alone():
    def model(rows):
        return rows.prod(1)

    options = LearningOptions(steps=2)
    loaded = ab.learn_baseline(model, DataLoader(TensorDataset(X), batch_size=2), options=options)
    assert torch.equal(loaded.values, ab.learn_baseline(model, X, options=options).values)


def saved_results(folder):
    x = torch.rand(24, 3, generator=torch.Generator().manual_seed(0)).double()
    model = lambda rows: rows.prod(1)  # noqa: E731
    made = {
        "explanation": ab.explain(model, x[:2], absence=0.0),
        "baseline": ab.learn_baseline(model, x, options=LearningOptions(steps=2)),
        "audit": ab.audit(model, x, absences={"zero": ab.Baseline(0.0)}),
        "imputer": ab.train_imputer(x, epochs=1, progress=False),
    }
    for name, result in made.items():
        result.save(folder / name)
    return [folder / name for name in made]


def test_a_file_with_a_flipped_bit_is_refused_or_holds_the_same(tmp_path):
    generator = torch.Generator().manual_seed(0)
    for path in saved_results(tmp_path):
        whole, shown = path.read_bytes(), repr(ab.load(path))
        with safe_open(path, framework="pt") as file:
            tensors = {key: file.get_tensor(key) for key in list(file.keys())}
        refused = 0
        # Half of the flips fall into the header.
        header = 8 + int.from_bytes(whole[:8], "little")
        for number in range(100):
            place = int(torch.randint(header if number % 2 else len(whole), (), generator=generator))
            damaged = bytearray(whole)
            damaged[place] ^= 1 << int(torch.randint(8, (), generator=generator))
            path.write_bytes(damaged)
            try:
                found = ab.load(path)
            except AbsentiaError:
                refused += 1
                continue
            found.save(tmp_path / "again")
            with safe_open(tmp_path / "again", framework="pt") as file:
                assert all(torch.equal(file.get_tensor(key), tensors[key]) for key in list(file.keys()))
            assert repr(found) == shown
        assert refused >= 95


def test_a_file_without_a_checksum_is_read_and_damage_to_it_gets_a_sentence(tmp_path):
    path = saved_results(tmp_path)[0]
    with safe_open(path, framework="pt") as file:
        tensors = {key: file.get_tensor(key) for key in list(file.keys())}
        text = file.metadata()["absentia"]
    save_file(tensors, path, metadata={"absentia": text})
    assert isinstance(ab.load(path), ab.Explanation)
    save_file(tensors, path, metadata={"absentia": text, "checkcum": "0" * 32})  # whose name a flipped bit changed
    with pytest.raises(AbsentiaError, match="damaged since"):
        ab.load(path)
    for bad in (
        text.replace('"fields"', '"feelds"'),
        text.replace('"record"', '"recrod"'),
        text.replace('"format": 4', '"format": "3"'),
        text.replace('"evaluations"', '"evaluatiuns"'),
        text.replace('"kind": "explanation"', '"kind": ["explanation"]'),
        text[:-1],
        "[1, 2]",
    ):
        assert bad != text
        save_file(tensors, path, metadata={"absentia": bad})
        with pytest.raises(AbsentiaError, match="path must"):
            ab.load(path)
    save_file({name: one for name, one in tensors.items() if name != "x"}, path, metadata={"absentia": text})
    with pytest.raises(AbsentiaError, match="in which something is missing or damaged"):
        ab.load(path)


def test_learning_goes_on_with_a_warning_if_its_checkpoint_cannot_be_written(tmp_path, monkeypatch):
    def learn(**more):
        return ab.learn_baseline(lambda rows: rows.prod(1), X, options=LearningOptions(steps=2, **more)).values

    def full(*given, **named):
        raise OSError("No space left on device")

    expected = learn()
    monkeypatch.setattr("absentia.storage.tensor_files.save_file", full)
    with pytest.warns(UserWarning, match="The checkpoint is not up to date. .*can't be written: No space left"):
        found = learn(checkpoint=tmp_path / "checkpoint")
    assert torch.equal(found, expected)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_large_inputs_are_held_a_few_at_a_time():
    """In a process of its own, whose memory is limited to what is there and 30 inputs of 10 MB each."""
    program = (
        "import resource, torch, absentia as ab\n"
        "torch.set_num_threads(1)\n"
        "x, players = torch.rand(1, 3, 900, 900), ab.Players.grid((3, 900, 900), (3, 3))\n"
        "used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + 30 * x.nbytes,) * 2)\n"
        "print(ab.explain(lambda rows: rows.amax((1, 2, 3)), x, absence=0.0, players=players, memory=2**24).samples)"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.stdout == "1\n", ran.stderr


def test_a_model_made_in_inference_mode_is_explained_and_learning_from_it_says_why_it_cannot():
    with torch.inference_mode():
        model = nn.Linear(4, 2)
    x = torch.rand(20, 4)
    assert ab.explain(model, x[:1], 0, absence=0.0).shapley.values.isfinite().all()
    with pytest.raises(ab.AbsentiaError, match=r"model must be made outside of torch\.inference_mode"):
        ab.learn_baseline(model, x, (x.sum(1) > 2).long())
    assert all(one.requires_grad for one in model.parameters())


def test_stand_ins_that_the_type_of_tokens_cannot_hold_are_refused():
    tokens = torch.ones(1, 3, dtype=torch.uint8)
    with pytest.raises(ab.AbsentiaError, match=r"baseline must hold numbers that torch.uint8 can represent. Got 300"):
        ab.explain(lambda rows: rows.double().sum(1), tokens, players=ab.Players.tokens(3), absence=300)


def test_calls_that_overlap_leave_the_number_of_threads_as_it_was():
    usual = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        first, second = (quickest_threads(lambda: None, torch.device("cpu")) for _ in range(2))
        first.__enter__()
        torch.set_num_threads(1)  # as the first call finds best
        second.__enter__()
        first.__exit__(None, None, None)
        second.__exit__(None, None, None)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(usual)
