"""Leak and invention as an audit finds them: planted ones, both at once, draws, classes, and what cannot be told."""

import math

import pytest
import torch
from sklearn.datasets import make_classification
from torch.nn.functional import cross_entropy, one_hot

import absentia as ab
from absentia.absences import StandIns
from absentia.auditing.split import ByClass, predict
from known_games import mlp
from seeded_draws import randn


class Blend:
    """An absence that leaves a share of each value, and puts a constant in the place of the rest."""

    def __init__(self, share, constant=0.0):
        self.share = share
        self.constant = constant

    def bind(self, x):
        return StandIns(x, (self.share * x + (1 - self.share) * self.constant)[:, None])


class Noise:
    """An absence of normal numbers, drawn for each sample, which tell nothing of it."""

    def __init__(self, seed):
        self.seed = seed

    def bind(self, x):
        return StandIns(x, randn(*x.shape, seed=self.seed)[:, None])


def two_blobs(samples=200, entries=4, seed=0):
    """Two classes, told apart by the sign of all entries, and a model that knows: log-odds ± their sum."""
    y = torch.arange(samples) % 2
    x = (2 * y[:, None] - 1) / 2 + randn(samples, entries, seed=seed)
    return x, y, lambda rows: torch.stack([-rows.sum(1) / 2, rows.sum(1) / 2], 1)


def test_leak_and_invention_are_the_split_of_fully_masked_samples():
    x, y, model = two_blobs()
    methods = {"blend": Blend(0.3, 0.2), "constant": 0.2}
    found = ab.audit(model, x, y, methods, draws=1)
    odds = lambda rows: ab.LogOdds(torch.zeros(len(rows), dtype=torch.int64))(model(rows), torch.arange(len(rows)))  # noqa: E731
    values = lambda rows: torch.stack([odds(rows), -odds(rows)], 1)  # noqa: E731
    split = ByClass.of_whole_samples(y, values(x), seed=0)
    for number, rows in enumerate((0.3 * x + 0.7 * 0.2, torch.full_like(x, 0.2))):
        expected = predict(split, values(rows), split.prior())
        assert float(found.leak.value[number]) == pytest.approx(float(expected.leak.mean()), abs=1e-9)
        assert float(found.invention.value[number]) == pytest.approx(float(expected.invention.mean()))
        error = float(expected.invention.std() / 200**0.5)
        assert float(found.invention.error[number]) == pytest.approx(error, abs=1e-12)
    assert found.curve.unit == "nats"
    assert found.curve.limit == pytest.approx(math.log(2))


def test_evidence_is_invention_less_leak_and_the_score_less_the_priors():
    x, y, model = two_blobs()
    found = ab.audit(model, x, y, {"blend": Blend(0.3, 0.2)}, draws=1)
    gap = float(found.invention.value - found.leak.value)
    assert float(found.evidence.value) == pytest.approx(gap)
    score = cross_entropy(model(0.3 * x + 0.7 * 0.2), y)
    assert float(found.evidence.value) == pytest.approx(float(score - found.fully_masked.prior.mean()))


def test_stand_ins_that_do_not_depend_on_the_sample_leak_exactly_nothing():
    x, y, model = two_blobs(61)
    data = randn(30, 4, seed=1)
    methods = {"zero": 0.0, "one": 1.0, "mean": "mean", "rows": ab.Marginal(data, draws=7)}
    found = ab.audit(model, x, y, methods, data=data, draws=1)
    assert found.leak.value.tolist() == [0.0] * 4
    assert found.leak.error.tolist() == [0.0] * 4
    # A network in single precision gives rows of a batch values that differ by rounding.
    network = mlp(4, 3).float()
    found = ab.audit(network, x.float(), torch.arange(61) % 3, {"zero": 0.0, "one": 1.0}, draws=1)
    assert found.leak.value.tolist() == [0.0] * 2


def test_a_planted_leak_grows_from_nothing_with_the_blend():
    x, y, model = two_blobs(400)
    shares = (1e-6, 0.01, 0.1, 0.2, 0.5)
    found = ab.audit(model, x, y, {f"{share:g}": Blend(share) for share in shares}, draws=1)
    leaks = found.leak.value.tolist()
    assert leaks == sorted(leaks)
    assert abs(leaks[0]) < 1e-4
    assert leaks[-1] > 0.2
    assert [found.leaks(number) for number in range(5)] == [False, True, True, True, True]
    assert [stage == "leaks" for stage in found.judgement.stages] == [False, False, True, True, True]


def test_a_planted_invention_grows_with_how_much_a_stand_in_argues():
    x, y, model = two_blobs(400)
    found = ab.audit(model, x, y, {"zero": 0.0, "argues": 0.3, "insists": 1.0}, draws=1)
    inventions = found.invention.value.tolist()
    assert inventions == sorted(inventions)
    assert [found.invents(number) for number in range(3)] == [False, True, True]
    assert found.leak.value.tolist() == [0.0] * 3
    assert found.recommended == "zero"
    text = " ".join(found.verdict)
    assert "zero neither leaks nor invents" in text
    assert "insists leaks nothing, invents 1." in text
    assert "more than there is to know (0.69)" in text


def test_a_leak_and_an_invention_at_once_are_told_apart():
    """The score of fully masked samples is that of the prior: by evidence alone there would be nothing to see."""
    x, y, model = two_blobs(2000)
    constant = 0.0
    while float(cross_entropy(model(0.4 * x + constant), y)) < math.log(2):
        constant += 0.01
    both = Blend(0.4, constant / 0.6)
    found = ab.audit(model, x, y, {"both": both, "zero": 0.0}, draws=1)
    assert abs(float(found.evidence.value[0])) < 0.02
    assert found.leaks(0)
    assert found.invents(0)
    assert "both leaks 0." in " ".join(found.verdict)
    assert found.recommended == "zero"


def test_how_sure_a_network_is_makes_no_difference_to_a_leak():
    x, y, model = two_blobs(600)
    plain = ab.audit(model, x, y, {"blend": Blend(0.5)}, draws=1)
    sure = ab.audit(lambda rows: 6 * model(rows), x, y, {"blend": Blend(0.5)}, draws=1)
    assert float(sure.leak.value) == pytest.approx(float(plain.leak.value), abs=0.02)
    assert float(sure.evidence.value) > float(plain.evidence.value) + 0.1
    assert sure.recommended is None
    assert sure.verdict[0].startswith("Use none of these (in 100 % of resamples): blend leaks 0.")


@pytest.mark.slow
def test_noise_is_accused_of_a_leak_in_few_audits():
    accused = 0
    for seed in range(40):
        x, y, model = two_blobs(60, seed=seed)
        found = ab.audit(model, x, y, {"noise": Noise(seed + 1000)}, draws=1, seed=seed)
        accused += found.leaks(0)
    assert accused <= 5  # 5 % of 40 are 2; more than 5 have a chance of 1 %


@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, 10, 50])
def test_a_neutral_absence_invents_nothing_however_many_classes_there_are(classes):
    frequencies = torch.rand(classes, generator=torch.Generator().manual_seed(0)).double() + 1
    claims = []

    def model(rows):
        told = one_hot(rows[:, 0].long(), classes)
        return frequencies.log() + 9 * told * (rows[:, 1:] > 0.5) * (rows[:, :1] > 0)

    for seed in range(6):
        generator = torch.Generator().manual_seed(seed)
        y = torch.multinomial(frequencies, 400, replacement=True, generator=generator)
        x = torch.stack([y + 0.5, torch.ones(400)], 1).double()
        found = ab.audit(model, x, y, {"zero": 0.0}, draws=1, seed=seed)
        claims.append("neither leaks nor invents" not in str(found))
    assert sum(claims) <= 1


class FewOfManyDraws:
    """Rows of which a hundred average to nothing, and of which a few argue for one class or the other."""

    def __init__(self, draws, seed=0):
        self.rows = randn(draws, 4, seed=seed) * 5

    def bind(self, x):
        return StandIns(x, self.rows[None])


def test_random_absences_are_audited_with_all_their_draws():
    x, y, model = two_blobs(100)
    absence = FewOfManyDraws(100)
    found = ab.audit(model, x, y, {"rows": absence}, draws=1, evaluations=20_000)
    mean = model(absence.rows).mean(0).expand(100, 2)
    expected = float(cross_entropy(mean, y)) - float(found.fully_masked.prior.mean())
    assert float(found.invention.value) == pytest.approx(expected, rel=1e-6)
    assert found.columns()["invention"].item() == float(found.invention.value)


@pytest.mark.slow
def test_the_error_of_an_invention_counts_its_draws():
    """Over redraws, an invention varies as its error says; without the draws the error would be next to nothing."""
    x, y, model = two_blobs(400)
    found = [ab.audit(model, x, y, {"rows": FewOfManyDraws(20, seed)}, draws=1, seed=seed) for seed in range(40)]
    values = torch.tensor([float(audit.invention.value) for audit in found])
    errors = torch.tensor([float(audit.invention.error) for audit in found])
    assert 0.5 < float(errors.square().mean().sqrt() / values.std()) < 3
    of_samples = torch.tensor([float(audit.fully_masked.inventions[0].mean(1).std()) / 10 for audit in found])
    assert float(of_samples.mean()) < 0.5 * float(errors.mean())


@pytest.mark.slow
def test_averaging_log_odds_of_several_classes_is_no_invention():
    y = torch.arange(120) % 5
    x = one_hot(y, 5).double() * 6 + randn(120, 5)
    rows = one_hot(torch.arange(40) % 5, 5).double() * 6
    found = ab.audit(lambda rows: rows * 3, x, y, {"rows": ab.Marginal(rows), "zero": 0.0}, draws=1)
    assert float(found.columns()["averaging"][0]) > 2
    assert float(found.columns()["averaging"][1]) == 0
    assert abs(float(found.invention.value[0])) < 0.1  # by symmetry, the mean log-odds are those of the frequencies
    assert "averaging" in found.shown_columns
    assert "what averaging log-odds over draws adds to the log-loss, which is no invention" in " ".join(
        repr(found).split()
    )
    two = ab.audit(lambda rows: rows * 3, x[:, :2], y % 2, {"rows": ab.Marginal(rows[:, :2])}, draws=1)
    assert "averaging" not in two.shown_columns


class OneForEachClass:
    """A baseline for each class: what the class is told by."""

    needs_classes = True

    def __init__(self, values):
        self.values = values

    def of(self, y):
        return ab.OwnBaselines(self.values[y])

    def bind(self, x):
        raise ab.AbsentiaError("Pick the classes first.")


def test_with_a_baseline_for_each_class_every_class_is_valued_with_its_own():
    """The label's baseline would tell the label: each class is sure of itself with its own, so none is told."""
    y = torch.arange(90) % 3
    x = one_hot(y, 3).double() * 4 + randn(90, 3)
    by_class = OneForEachClass(torch.eye(3).double() * 4)
    found = ab.audit(lambda rows: rows, x, y, {"own": by_class, "zero": 0.0}, draws=1)
    assert float(found.leak.value[0]) == 0
    assert abs(float(found.invention.value[0])) < 0.02
    # To be sure of one class only is an invention.
    lopsided = OneForEachClass(torch.eye(3).double() * torch.tensor([9.0, 0, 0]))
    found = ab.audit(lambda rows: rows, x, y, {"own": lopsided}, draws=1)
    assert float(found.leak.value[0]) == 0
    assert float(found.invention.value[0]) > 0.1


def test_without_classes_they_are_those_that_the_model_predicts():
    x, _, model = two_blobs()
    found = ab.audit(model, x, None, {"zero": 0.0, "one": 1.0}, draws=1)
    predicted = model(x).argmax(1)
    expected = ab.audit(model, x, predicted, {"zero": 0.0, "one": 1.0}, draws=1)
    assert torch.equal(found.invention.value, expected.invention.value)
    note = "No classes were given: they are those that the model predicts for whole samples."
    assert note in found.record.notes
    assert note in " ".join(repr(found).split())
    assert note not in expected.record.notes


def test_classes_too_rare_to_fit_are_not_estimable():
    y = torch.arange(60) // 3
    x = one_hot(y, 20).double() + 0.1 * randn(60, 20)
    players = ab.Players.groups({"a": range(10), "b": range(10, 20)}, 20)
    found = ab.audit(lambda rows: 5 * rows, x, y, {"zero": 0.0}, players=players, draws=1)
    assert found.verdict == ("No recommendation: most classes are too rare: pass at least 5 samples of each class.",)
    assert bool(found.leak.value.isnan())
    alone = ab.audit(lambda rows: 5 * rows, x, [0] * 60, {"zero": 0.0}, players=players, draws=1)
    assert alone.verdict == ("No recommendation: all samples have the same class: pass samples of several classes.",)
    few = torch.cat([torch.arange(57) % 2, torch.tensor([2, 2, 3])])
    found = ab.audit(lambda rows: 5 * rows, x, few, {"zero": 0.0}, players=players, draws=1)
    assert found.recommended == "zero"
    assert "3 samples of rare classes are left out of leak and invention." in repr(found)


def test_other_readouts_have_shares_of_the_variance():
    x = randn(200, 3)
    model = mlp(3)
    found = ab.audit(model, x, None, {"constant": 0.1, "blend": Blend(0.5)}, draws=1)
    full = model(x).detach().squeeze()
    empty = model(torch.full_like(x[:1], 0.1)).detach().squeeze()
    evidence = (empty - full).square().mean() / full.var(correction=0) - 1
    assert float(found.invention.value[0]) == pytest.approx(float(evidence), abs=0.02)
    assert found.leak.value[0] == 0
    assert 0.3 < float(found.leak.value[1]) <= 1
    assert found.curve.unit == "of the variance"
    assert found.curve.limit == 1
    assert "Both as shares of the variance" in " ".join(repr(found).split())


def test_the_masking_curve_splits_off_inventions_alone():
    x, y, model = two_blobs(400)
    found = ab.audit(model, x, y, {"zero": 0.0, "argues": 0.5}, draws=1)
    assert found.curve.inventions.shape == (2, 5)
    # Present players are right about the class, and zero asserts nothing.
    assert float(found.curve.inventions[0].abs().max()) < 0.03
    by_size = found.curve.inventions[1].tolist()
    assert by_size[0] == pytest.approx(float(found.invention.value[1]), abs=0.02)
    assert by_size[:4] == sorted(by_size[:4], reverse=True)  # the fewer players are absent, the less is invented
    assert abs(by_size[4]) < 0.03


@pytest.mark.slow
def test_seeds_agree_on_the_recommendation_or_call_it_level():
    """Boosted trees with steep outputs: by eight draws of the marginal, the seed would decide."""
    lightgbm = pytest.importorskip("lightgbm")
    x, y = make_classification(2900, 20, n_informative=8, random_state=0)
    model = lightgbm.LGBMClassifier(n_estimators=300, verbose=-1, n_jobs=1, random_state=0).fit(x[:2600], y[:2600])
    methods = {"mean": "mean", "marginal": "marginal"}
    settings = {"data": x[:2600], "evaluations": 200_000}
    audits = [ab.audit(model, x[2600:], y[2600:], methods, seed=seed, **settings) for seed in range(3)]
    assert {audit.recommended for audit in audits if audit.judgement.clear} == {"marginal"}
    assert {"marginal"} <= set.intersection(*(set(audit.level) for audit in audits))
    _, first = audits[0].invention.value
    for audit in audits:
        (_, value), (_, error) = audit.invention
        assert float(error) > 0.1  # which counts the draws: of the samples alone it is 0.02
        assert abs(float(value - first)) <= 3 * float(error)
        assert not audit.invents(1)
