"""The conformance suite that every absence must pass, and the checks that absences share."""

import pytest
import torch
from sklearn.linear_model import LogisticRegression

import absentia as ab
from absentia import AbsentiaError, MaskedModel, Output, Players
from absentia.absences import (
    Absence,
    Baseline,
    Blur,
    Fill,
    GaussianConditional,
    Marginal,
    NearestNeighbours,
    Noise,
    OwnBaselines,
    StandIns,
    Surrogate,
    train_imputer,
    train_surrogate,
)
from absentia.absences.protocol import check_absence, describe_absence, empty_inputs, for_classes
from fitted_table import CLASSES, FITTED, SWAPPED, TRAINING_TABLE

TABLE = torch.randn(5, 6, generator=torch.Generator().manual_seed(1))
IMAGES = torch.rand(3, 2, 6, 7, generator=torch.Generator().manual_seed(2))
BACKGROUND = torch.randn(20, 6, generator=torch.Generator().manual_seed(3))
ALBUM = torch.rand(12, 2, 6, 7, generator=torch.Generator().manual_seed(4))
TOKENS = torch.randint(1, 9, (4, 6), generator=torch.Generator().manual_seed(5))
TEXTS = torch.randint(1, 9, (15, 6), generator=torch.Generator().manual_seed(6))

# Every masking method, with samples that it takes and, if there are such, samples of a shape that it refuses. A new
# one is added here, and must pass all tests below. Each is made once, when a test first needs it.
CASES = {
    "scalar baseline": (lambda: Baseline(0.5), TABLE, None),
    "vector baseline": (lambda: Baseline(torch.arange(6.0)), TABLE, TABLE[:, :5]),
    "baseline per channel": (lambda: Baseline([0.1, 0.9]), IMAGES, IMAGES[:, :1]),
    "baseline per entry": (lambda: Baseline(torch.rand(2, 6, 7)), IMAGES, IMAGES[..., :6]),
    "baseline of tokens": (lambda: Baseline(0), TOKENS, None),
    "mean": (lambda: Baseline.mean(BACKGROUND), TABLE, TABLE[:, :5]),
    "median": (lambda: Baseline.median(BACKGROUND), TABLE, TABLE[:, :5]),
    "mode": (lambda: Baseline.mode(BACKGROUND.round()), TABLE, TABLE[:, :5]),
    "blur": (lambda: Blur(1.5), IMAGES, TABLE),
    "marginal": (lambda: Marginal(BACKGROUND), TABLE, TABLE[:, :5]),
    "marginal, drawn": (lambda: Marginal(BACKGROUND, draws=4, seed=7), TABLE, IMAGES),
    "marginal of tokens": (lambda: Marginal(TEXTS, draws=4), TOKENS, TOKENS[:, :5]),
    "noise": (lambda: Noise(draws=3), TABLE, None),
    "noise like the data": (lambda: Noise(ALBUM, kind="normal", draws=3), IMAGES, IMAGES[..., :6]),
    "noise of tokens": (lambda: Noise(TEXTS, draws=3), TOKENS, TOKENS[:, :5]),
    "Gaussian": (lambda: GaussianConditional(BACKGROUND, draws=3), TABLE, TABLE[:, :5]),
    "Gaussian mean": (lambda: GaussianConditional(BACKGROUND, sample=False), TABLE.double(), TABLE[:, :5]),
    "Gaussian of images": (lambda: GaussianConditional(ALBUM, draws=2), IMAGES, IMAGES[..., :6]),
    "neighbours": (lambda: NearestNeighbours(BACKGROUND, neighbours=3), TABLE, TABLE[:, :5]),
    "neighbours as they are": (
        lambda: NearestNeighbours(ALBUM, neighbours=2, standardise=False),
        IMAGES,
        IMAGES[:, :1],
    ),
    "neighbours of tokens": (lambda: NearestNeighbours(TEXTS, neighbours=2), TOKENS, TOKENS[:, :5]),
    "surrogate": (
        lambda: train_surrogate(lambda rows: rows.sum(1), BACKGROUND, epochs=1),
        TABLE,
        TABLE[:, :5],
    ),
    "imputer": (lambda: train_imputer(BACKGROUND, epochs=1, draws=3), TABLE, TABLE[:, :5]),
    "imputer of images": (lambda: train_imputer(ALBUM, epochs=1, draws=2), IMAGES.double(), IMAGES[..., :6]),
}


@pytest.fixture(scope="session", params=CASES)
def whole_case(request):
    make, x, refused = CASES[request.param]
    return make(), x, refused


@pytest.fixture
def case(whole_case):
    return whole_case[:2]


def random_presence(samples, coalitions, x):
    return torch.rand(samples, coalitions, *x.shape[1:], generator=torch.Generator().manual_seed(5)) > 0.5


def same(masked, expected):
    """Whether masked inputs are equal up to rounding."""
    return torch.allclose(masked.double(), expected.double(), rtol=1e-4, atol=1e-5, equal_nan=True)


def test_it_is_an_absence_and_binds_to_a_fill(case):
    absence, x = case
    assert isinstance(absence, Absence)
    assert isinstance(absence.bind(x), Fill)
    assert repr(absence)


@pytest.mark.parametrize("samples", [slice(1, 3), slice(None), slice(2, 3)])
def test_masked_inputs_have_the_stated_shape_type_and_device(case, samples):
    absence, x = case
    fill = absence.bind(x)
    masked = fill(samples, random_presence(1, 4, x))
    assert fill.draws >= 1
    assert masked.shape == (len(x[samples]), 4, fill.draws, *x.shape[1:])
    assert masked.dtype == x.dtype
    assert masked.device == x.device


def test_present_entries_keep_their_values_exactly(case):
    absence, x = case
    presence = random_presence(len(x), 8, x)
    fill = absence.bind(x)
    masked = fill(slice(0, len(x)), presence)
    present = presence[:, :, None].expand_as(masked)
    assert torch.equal(masked[present], x[:, None, None].expand_as(masked)[present])


def test_the_full_coalition_is_the_sample(case):
    absence, x = case
    masked = absence.bind(x)(slice(None), torch.ones(1, 1, *x.shape[1:], dtype=torch.bool))
    assert torch.equal(masked, x[:, None, None].expand_as(masked))


def test_the_empty_coalition_keeps_nothing_of_a_sample(case):
    absence, x = case
    if isinstance(absence, Blur):
        pytest.skip("a blur is made of the sample itself")
    presence = torch.zeros(1, 1, *x.shape[1:], dtype=torch.bool)
    masked = absence.bind(x)(slice(None), presence)
    assert same(masked, masked[:1].expand_as(masked))
    assert same(masked[:1], absence.bind(x.flip(0))(slice(0, 1), presence))


def test_absent_values_are_finite_and_do_not_change_from_call_to_call(case):
    absence, x = case
    presence = random_presence(1, 6, x)
    fill = absence.bind(x)
    first = fill(slice(None), presence)
    again = fill(slice(None), presence)
    bound_again = absence.bind(x)(slice(None), presence)
    if isinstance(absence, Surrogate):  # whose stand-ins are marks that only its own model reads
        assert torch.equal(first.isnan(), ~presence[:, :, None].expand_as(first))
    else:
        assert torch.isfinite(first.double()).all()
    assert torch.equal(first.nan_to_num(7), again.nan_to_num(7))
    assert torch.equal(first.nan_to_num(7), bound_again.nan_to_num(7))


def test_a_sample_is_masked_the_same_alone_and_in_a_batch(case):
    absence, x = case
    presence = random_presence(1, 6, x)
    together = absence.bind(x)(slice(None), presence)
    alone = absence.bind(x[1:2])(slice(None), presence)
    assert same(together[1:2], alone)


def test_each_sample_may_have_a_presence_of_its_own(case):
    absence, x = case
    presence = random_presence(len(x), 3, x)
    fill = absence.bind(x)
    together = fill(slice(None), presence)
    for sample in range(len(x)):
        assert same(together[[sample]], fill(slice(sample, sample + 1), presence[[sample]]))


def test_coalitions_are_masked_the_same_one_by_one(case):
    absence, x = case
    presence = random_presence(1, 5, x)
    fill = absence.bind(x)
    together = fill(slice(None), presence)
    for coalition in range(5):
        assert same(together[:, [coalition]], fill(slice(None), presence[:, [coalition]]))


def test_neither_samples_nor_presence_are_written_to(case):
    absence, x = case
    presence = random_presence(len(x), 3, x)
    x_before = x.clone()
    presence_before = presence.clone()
    absence.bind(x)(slice(None), presence)
    assert torch.equal(x, x_before)
    assert torch.equal(presence, presence_before)


@pytest.mark.parametrize("samples", [torch.tensor([2, 0]), slice(1, 3), None])
def test_a_selection_masks_as_the_whole_does(case, samples):
    absence, x = case
    fill = absence.bind(x)
    chosen = slice(None) if samples is None else samples
    draws = [number for number in (fill.draws - 1, 0) if number < fill.draws]
    presence = random_presence(len(x), 4, x)
    everyone = slice(None)
    whole = fill(everyone, presence)[chosen]
    assert same(fill.select(samples)(everyone, presence[chosen]), whole)
    part = fill.select(samples, draws)
    assert isinstance(part, Fill)
    assert part.draws == len(draws)
    assert same(part(everyone, presence[chosen]), whole[:, :, draws])
    assert same(part.select(None, [1])(everyone, presence[chosen]), whole[:, :, draws[1:2]])
    assert same(part.select(slice(1, 2))(everyone, presence[chosen][1:2]), whole[1:2, :, draws])
    assert same(fill(everyone, presence)[chosen], whole)  # the fill itself stays as it was


def test_samples_of_another_shape_are_refused_with_a_sentence(whole_case):
    absence, _, wrong = whole_case
    if wrong is None:
        pytest.skip("samples of any shape will do")
    with pytest.raises(AbsentiaError, match=r" must .*shape.* Got .* instead"):
        absence.bind(wrong)


@pytest.mark.parametrize(
    ("absence", "sentence"),
    [
        (Blur(1.0), "x must be images .* in floating point for Blur. Got torch.int64"),
        (Baseline(0.5), "baseline must hold whole numbers for integer inputs. Got 0.5"),
        (OwnBaselines(torch.full((4, 6), 0.5)), "baselines must hold whole numbers for integer inputs"),
        (Marginal(BACKGROUND), "background must hold whole numbers for integer inputs"),
        (NearestNeighbours(BACKGROUND), "data must hold whole numbers for integer inputs"),
        (Noise(kind="normal"), "kind must be 'uniform' for integer inputs"),
        (GaussianConditional(BACKGROUND), "x must be in floating point for GaussianConditional. .* use NearestNeigh"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_tokens_are_refused_with_a_sentence_where_they_make_no_sense(absence, sentence):
    with pytest.raises(AbsentiaError, match=sentence):
        absence.bind(TOKENS)


class OfEachClass:
    """An absence with one baseline for each class."""

    needs_classes = True

    def bind(self, x):
        raise AssertionError("the samples' classes are not known")

    def of(self, y):
        return OwnBaselines(torch.arange(3.0)[y][:, None].expand(-1, 6))


def test_the_baselines_of_the_samples_classes_are_used():
    y = torch.tensor([2, 0, 1, 1, 0])
    bound = for_classes(OfEachClass(), y).bind(TABLE)
    assert bound(slice(None), torch.zeros(1, 1, 6, dtype=torch.bool))[:, 0, 0, 0].tolist() == y.tolist()
    with pytest.raises(AbsentiaError, match="y must be given for an absence with one baseline for each class"):
        for_classes(OfEachClass(), None)
    plain = Baseline(0.0)
    assert for_classes(plain, None) is plain


def test_classes_beside_a_readout_choose_among_the_baselines_of_classes():
    nobody = torch.zeros(1, 6, dtype=torch.bool)
    for y in ([2, 0, 1, 1, 0], 1):
        game = MaskedModel(lambda rows: rows, TABLE, y, absence=OfEachClass(), readout=Output(0))
        assert game(nobody)[:, 0].tolist() == torch.tensor(y).expand(5).tolist()


def test_what_is_no_absence_gets_a_sentence():
    with pytest.raises(AbsentiaError, match=r"absence must be an absence .* Got the class Baseline instead. Call it"):
        check_absence(Baseline)
    with pytest.raises(AbsentiaError, match=r"absence must be an absence .* Got ndarray instead"):
        check_absence(torch.zeros(2).numpy())


def test_an_absence_is_described_in_one_line():
    assert describe_absence(Baseline(0.0)) == "Baseline(0)"
    assert describe_absence(OfEachClass()) == "OfEachClass"


@pytest.mark.parametrize("numbers", [1, 2**24])
def test_the_inputs_of_the_empty_coalition_are_averaged_over_draws(numbers, monkeypatch):
    monkeypatch.setattr("absentia.absences.protocol._NUMBERS_PER_BLOCK", numbers)
    players = Players.groups({"first": [0], "last": [5]}, 6)
    here = torch.device("cpu")
    empty = empty_inputs(Marginal(BACKGROUND).bind(TABLE), len(TABLE), players, here)
    assert torch.allclose(empty[:, [0, 5]], BACKGROUND.mean(0)[[0, 5]].expand(5, -1))
    assert torch.allclose(empty[:, 1:5], TABLE[:, 1:5])
    words = Marginal(torch.tensor([[7] * 6, [3] * 6, [7] * 6])).bind(TOKENS)
    assert empty_inputs(words, len(TOKENS), players, here)[:, [0, 5]].tolist() == [[7, 7]] * 4
    own = StandIns(TABLE, -TABLE[:, None])
    assert torch.equal(empty_inputs(own, len(TABLE), Players.features(6), here), -TABLE)


def test_stand_ins_that_the_type_of_tokens_cannot_hold_are_refused():
    tokens = torch.ones(1, 3, dtype=torch.uint8)
    with pytest.raises(ab.AbsentiaError, match=r"baseline must hold numbers that torch.uint8 can represent. Got 300"):
        ab.explain(lambda rows: rows.double().sum(1), tokens, players=ab.Players.tokens(3), absence=300)


@pytest.mark.slow
def test_values_of_another_order_of_players_are_refused():
    learned = ab.learn_baseline(FITTED, TRAINING_TABLE, CLASSES, options=ab.LearningOptions(steps=1))
    made = LogisticRegression().fit(SWAPPED, CLASSES)
    with pytest.raises(ab.AbsentiaError, match=r"absence must have values for the players in their order. Got a, b"):
        ab.explain(made, SWAPPED[:2], 1, absence=learned)
    with pytest.raises(ab.AbsentiaError, match=r"absence must have values for the players in their order. Got a, b"):
        ab.audit(made, SWAPPED, CLASSES, {"learned": learned})
