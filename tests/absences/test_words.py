"""Absences by word and number: the same as the library makes from data."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import nn

import absentia as ab
from absentia import AbsentiaError, Players
from absentia.absences import Baseline, Blur, GaussianConditional, Marginal, NearestNeighbours, Noise, words
from absentia.absences.protocol import empty_inputs
from absentia.absences.words import WORDS, named_absence
from absentia.auditing.audit_run import Run

ROWS = torch.rand(40, 3, generator=torch.Generator().manual_seed(0))
IMAGES = torch.rand(6, 1, 60, 80, generator=torch.Generator().manual_seed(1))
TOKENS = torch.randint(9, (20, 4), generator=torch.Generator().manual_seed(2))


def masked(absence, x):
    """What an absence puts in for the first column."""
    presence = torch.ones(1, 1, *x.shape[1:], dtype=torch.bool)
    presence[..., 0] = False
    return absence.bind(x)(slice(None), presence)


@pytest.mark.parametrize(
    ("word", "made"),
    [
        ("zero", lambda x: Baseline(0.0)),
        (0, lambda x: Baseline(0.0)),
        (0.25, lambda x: Baseline(0.25)),
        (np.float64(0.25), lambda x: Baseline(0.25)),
        ("0.25", lambda x: Baseline(0.25)),
        ("-1e-3", lambda x: Baseline(-1e-3)),
        ("mean", Baseline.mean),
        ("median", Baseline.median),
        ("mode", Baseline.mode),
        ("marginal", Marginal),
        ("marginal:7", lambda x: Marginal(x, draws=7, seed=5)),
        ("noise", lambda x: Noise(x, seed=5)),
        ("noise:3", lambda x: Noise(x, draws=3, seed=5)),
        ("gaussian", lambda x: GaussianConditional(x, seed=5)),
        ("gaussian:4", lambda x: GaussianConditional(x, draws=4, seed=5)),
        ("neighbours", lambda x: NearestNeighbours(x, seed=5)),
        ("neighbours:2", lambda x: NearestNeighbours(x, neighbours=2, seed=5)),
    ],
)
def test_words_are_the_absences_of_the_library(word, made):
    absence = named_absence(word, ROWS, seed=5)
    torch.testing.assert_close(masked(absence, ROWS[:2]), masked(made(ROWS), ROWS[:2]))


def test_an_absence_is_returned_as_it_is():
    absence = Blur(2.0)
    assert named_absence(absence) is absence


def test_data_come_as_arrays_and_lists():
    assert named_absence("mean", [[0.0, 2.0], [1.0, 4.0]]).values.tolist() == [0.5, 3.0]
    assert named_absence("mean", ROWS.numpy()).values.tolist() == Baseline.mean(ROWS).values.tolist()


def test_a_blur_fits_the_image_and_a_marginal_is_a_hundred_rows():
    assert named_absence("blur", IMAGES) == Blur(3.0)
    assert named_absence("blur", players=Players.grid((1, 60, 80), (2, 2))) == Blur(3.0)
    assert named_absence("blur", IMAGES[..., :8, :8]) == Blur(1.0)
    assert named_absence("blur:0.5") == Blur(0.5)
    assert repr(named_absence("marginal", torch.rand(150, 3))) == "Marginal(100 of 150 rows)"
    assert repr(named_absence("neighbours", ROWS[:4])) == "NearestNeighbours(4 of 4 rows, standardised)"


@pytest.mark.parametrize(
    ("word", "message"),
    [
        (
            "meen",
            "absence must be an absence, a number, or one of zero, mean, .* Got 'meen' instead. Some take a num",
        ),
        ("blur:", "absence must be an absence, a number, or one of"),
        ("zero:3", "absence must be zero without a number. Got zero:3"),
        ("mean:3", "absence must be mean without a number"),
        ("median:3", "absence must be median without a number"),
        ("mode:3", "absence must be mode without a number"),
        ("blur:x", "absence must give the blur a number of pixels, as in blur:2. Got blur:x"),
        ("blur:-1", "sigma must be a positive number"),
        ("marginal:x", "absence must give marginal a whole number, as in marginal:10"),
        ("marginal:99", "draws must lie between 1 and 40"),
        ("noise:0", "draws must be at least 1"),
        ("neighbours:0", "neighbours must lie between 1"),
        ("inf", "values must be finite"),
        ("learned", r"A learned absence has to be learned first. Call learn_baseline\(model, x, y\)"),
        (Baseline, "absence must be an absence .* Got the class Baseline"),
    ],
)
def test_what_is_no_absence_gets_a_sentence(word, message):
    with pytest.raises(AbsentiaError, match=message):
        named_absence(word, ROWS)


@pytest.mark.parametrize("word", [word for word in WORDS if word not in ("zero", "missing")])
def test_words_that_need_data_say_so(word):
    with pytest.raises(AbsentiaError, match=rf"The absence '{word}' is computed from data. Pass data=…"):
        named_absence(word)


def test_absences_keep_to_categories():
    data = torch.cat([ROWS, TOKENS[:, :1].repeat(2, 1)], dim=1)
    players = Players.features(4, categorical=[3])
    for word in ("blur:1", "noise"):
        with pytest.raises(AbsentiaError, match=r"absence must keep to the categories .* Use mean or median"):
            named_absence(word, data, players=players)
        assert named_absence(word, data, players=players.only([0, 1])) is not None  # which mask no category
    median = named_absence("median", data, players=players)
    assert median.values[3] == data[:, 3].mode().values
    mean = named_absence("mean", data, players=players)
    assert mean.values.tolist() == [*data[:, :3].mean(0).tolist(), data[:, 3].mode().values]
    gaussian = named_absence("gaussian", data, players=players).bind(data[:2])
    nobody = torch.zeros(1, 1, 4, dtype=torch.bool)
    assert (gaussian(slice(None), nobody)[..., 3] == data[:, 3].mode().values).all()


def test_the_columns_of_a_one_hot_code_are_one_category():
    codes = torch.tensor([0] * 2 + [1] * 3 + [2] * 4)
    data = torch.cat([torch.arange(9.0)[:, None], torch.eye(3)[codes]], dim=1)
    players = Players.features(4, categorical=[[1, 2, 3]])
    for word in ("median", "mode"):
        assert named_absence(word, data, players=players).values[1:].tolist() == [0, 0, 1]
        assert named_absence(word, data).values[1:].tolist() == [0, 0, 0]  # no category at all


def test_the_usual_absences_depend_on_the_kind_of_data():
    table = Players.features(3)
    image = Players.grid((1, 60, 80), (2, 2))
    categories = Players.features(3, categorical=[2])
    assert words.usual_words(ROWS, table) == ["zero", "mean", "median", "marginal", "gaussian"]
    assert words.usual_words(ROWS, categories) == ["median", "mode", "marginal", "neighbours"]
    assert words.usual_words(IMAGES, image) == ["zero", "mean", "blur", "noise", "marginal"]
    assert words.usual_words(TOKENS, Players.tokens(4)) == ["mode", "marginal"]
    for data, players in ((ROWS, table), (ROWS, categories), (IMAGES, image), (TOKENS, Players.tokens(4))):
        for word in words.usual_words(data, players):
            assert masked(named_absence(word, data, players=players), data[:2]).shape[0] == 2


def test_a_covariance_of_many_entries_or_of_one_row_is_left_out():
    assert "gaussian" not in words.usual_words(torch.rand(4, 2000), Players.features(2000))
    assert "gaussian" not in words.usual_words(ROWS[:1], Players.features(3))


@dataclass(frozen=True)
class Kind:
    """A kind of data, with a model that takes it in single precision."""

    x: torch.Tensor
    data: torch.Tensor
    players: Players
    model: object = lambda rows: rows.float().flatten(1).sum(1)


def uniform(*shape, seed):
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed)).double()


def numbers():
    return Kind(uniform(3, 3, seed=3), uniform(31, 3, seed=4), Players.features(3), torch.nn.Linear(3, 1))


def named_categories():
    """A column of codes, whose median is not the most frequent one, and two of numbers."""
    codes = torch.tensor([0] * 12 + [1] * 9 + [2] * 10).double()[:, None]
    data = torch.cat([codes, uniform(31, 2, seed=5)], dim=1)
    players = Players.features(["city", "age", "size"], {"city": ["Bern", "Oslo", "Rome"]})
    return Kind(data[[0, 15, 30]] + torch.tensor([0, 0.01, 0]), data, players, torch.nn.Linear(3, 1))


def one_hot():
    data = torch.cat([uniform(31, 1, seed=6), torch.eye(3).double()[torch.arange(31) % 4 % 3]], dim=1)
    players = Players.features(4, categorical=[[1, 2, 3]])
    return Kind(data[:3] + torch.tensor([0.01, 0, 0, 0]), data, players, torch.nn.Linear(4, 1))


def images():
    players = Players.grid((1, 8, 8), (2, 2))
    return Kind(uniform(3, 1, 8, 8, seed=7), uniform(31, 1, 8, 8, seed=8), players)


def tokens():
    rows = torch.randint(9, (34, 4), generator=torch.Generator().manual_seed(9))
    return Kind(rows[:3], rows[3:], Players.tokens(4))


KINDS = (numbers, named_categories, one_hot, images, tokens)
MORE_WORDS = ("blur:2", "noise:3", "marginal:7", "gaussian:4", "neighbours:2", "0.25", 0, 2, 0.5)


def audited(kind, absences, monkeypatch, **settings):
    """Return the setup of an audit before it measures anything."""
    setups = []

    def keep(run, *_):
        setups.append(run.setup)
        raise KeyboardInterrupt

    monkeypatch.setattr(Run, "work", keep)
    with pytest.raises(KeyboardInterrupt):
        ab.audit(kind.model, kind.x, None, absences, players=kind.players, data=kind.data, **settings)
    return setups[0]


def tried(call):
    """Return what a call returns, and the sentence with which it refuses."""
    try:
        return call(), ""
    except AbsentiaError as error:
        return None, str(error)


def some_presence(players):
    """Coalitions of no player, of the first and of all but the first, over the entries."""
    coalitions = torch.zeros(1, 3, len(players), dtype=torch.bool)
    coalitions[0, 1, 0] = True
    coalitions[0, 2, 1:] = True
    return players.presence(coalitions)


@pytest.mark.parametrize("word", [*WORDS, *MORE_WORDS])
@pytest.mark.parametrize("make", KINDS)
def test_a_word_means_the_same_absence_to_explain_and_audit(make, word, monkeypatch):
    kind = make()
    settings = {"absence": word, "players": kind.players, "data": kind.data, "seed": 5}
    explained, refusal = tried(lambda: ab.explain(kind.model, kind.x, **settings))
    run, refusal_of_audit = tried(lambda: audited(kind, {"it": word}, monkeypatch, seed=5))
    if refusal or refusal_of_audit:
        assert refusal_of_audit == f"it cannot be audited: {refusal}"
        return
    fill = run.methods["it"].fill
    everyone = slice(None)
    assert torch.equal(explained.stand_ins, empty_inputs(fill, len(kind.x), kind.players, torch.device("cpu")))
    game = ab.MaskedModel(kind.model, kind.x, **settings)
    presence = some_presence(kind.players)
    assert game.draws == fill.draws
    assert torch.equal(game.fill(everyone, presence), fill(everyone, presence))


@pytest.mark.parametrize("make", KINDS)
def test_the_usual_absences_of_an_audit_are_those_that_words_name(make, monkeypatch):
    kind = make()
    run = audited(kind, None, monkeypatch, seed=5)
    assert list(run.methods) == words.usual_words(kind.data, kind.players)
    presence = some_presence(kind.players)
    for word, method in run.methods.items():
        game = ab.MaskedModel(kind.model, kind.x, absence=word, players=kind.players, data=kind.data, seed=5)
        assert torch.equal(game.fill(slice(None), presence), method.fill(slice(None), presence))


def test_the_marginal_of_an_audit_has_the_hundred_rows_of_the_word(monkeypatch):
    kind = numbers()
    many = Kind(kind.x, uniform(150, 3, seed=1), kind.players, kind.model)
    marginal = audited(many, None, monkeypatch, seed=5).methods["marginal"].absence
    game = ab.MaskedModel(many.model, many.x, absence="marginal", data=many.data, seed=5)
    assert repr(marginal) == "Marginal(100 of 150 rows)"
    assert torch.equal(marginal.bind(game.x).values, game.fill.values)
    other = ab.MaskedModel(many.model, many.x, absence="marginal", data=many.data, seed=6)
    assert not torch.equal(other.fill.values, game.fill.values)


def test_categories_may_be_named_at_the_edge_or_by_the_players(monkeypatch):
    kind = named_categories()
    plain = Kind(kind.x, kind.data, Players.features(3), kind.model)
    known = audited(kind, ["median"], monkeypatch).methods["median"].absence
    told = audited(plain, ["median"], monkeypatch, categorical=[0]).methods["median"].absence
    settings = {"absence": "median", "data": kind.data, "categorical": [0]}
    assert torch.equal(known.values, told.values)
    assert known.values[0] == 0  # the most frequent code; the median is 1
    assert torch.equal(ab.MaskedModel(kind.model, kind.x, **settings).fill.values[0, 0], known.values)
    assert torch.equal(ab.explain(kind.model, kind.x, **settings).stand_ins[0], known.values)


def test_neighbours_are_left_out_of_the_usual_if_samples_are_the_data(monkeypatch):
    kind = named_categories()
    run = audited(Kind(kind.data, None, kind.players, kind.model), None, monkeypatch)
    assert list(run.methods) == ["median", "mode", "marginal"]


def test_data_of_fractions_are_refused_for_tokens_rather_than_cut():
    kind = tokens()
    settings = {"players": kind.players, "data": kind.data + 0.5}
    with pytest.raises(AbsentiaError, match=r"data must hold whole numbers for integer inputs. Got"):
        ab.audit(kind.model, kind.x, None, ["mode"], **settings)
    with pytest.raises(AbsentiaError, match=r"data must hold whole numbers for integer inputs. Got"):
        ab.explain(kind.model, kind.x, absence="mode", **settings)


SIX_ROWS = torch.rand(6, 3, generator=torch.Generator().manual_seed(1))


def test_numbers_of_numpy_are_absences_and_places_of_the_output():
    model = nn.Linear(3, 2)
    found = ab.explain(model, SIX_ROWS, absence=np.float32(0.5), readout=ab.Output(np.int64(1)))
    assert torch.equal(found.outputs, ab.explain(model, SIX_ROWS, absence=0.5, readout=ab.Output(1)).outputs)
    for number in (0.5, np.float32(0.5), torch.tensor(0.5)):  # as in a mapping of absences
        assert repr(named_absence(number)) == "Baseline(0.5)"
    assert repr(named_absence(np.str_("zero"))) == "Baseline(0)"
