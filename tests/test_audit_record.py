"""What an audit says and keeps: estimates, verdict, warnings, table, picture, file."""

import math
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file
from scipy.stats import spearmanr

import absentia as ab
from absentia.auditing.audit_record import AuditRecord, Cost
from absentia.auditing.estimates import estimate, ratio_of_means
from absentia.auditing.own_games import join_games, spearman
from absentia.auditing.plausibility import Plausibility, compare_with_data, measure_distances
from absentia.auditing.removal import Removal
from absentia.data import data_range
from absentia.storage import read_tensors, write_tensors
from known_games import mlp


def randn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).double()


def make_removal(*shares, samples=20, draws=3, noise=0.1, spread=0.01):
    """Strengths by hand: samples of strength 1, noise and masked samples with given shares of it, jittered."""
    jitter = spread * randn(len(shares) + 1, samples, draws)
    masked = torch.tensor(shares).double()[:, None, None] + jitter[1:]
    return Removal(masked, torch.ones(samples, draws).double(), noise + jitter[0], torch.zeros(samples).double())


def doubt(removal):
    """The notes on R of an audit in which R alone was measured."""
    plausible = Plausibility(torch.ones(2).double(), torch.zeros(2, 3, dtype=torch.bool))
    record = AuditRecord("", 20, 3, True, ("x", "y", "z"), 0, {}, Cost(), ())
    return ab.Audit(("a", "b"), ("x", "y", "z"), removal, join_games([], 2, 3), plausible, record).notes_on_R


@given(st.integers(0, 2**31), st.booleans(), st.booleans())
def test_errors_cover_samples_and_draws_shared_or_not(seed, shared, many):
    """y = sample + draw + rest, over and over: the mean's true spread is what is reported, or a little less."""
    k, d = (12, 4) if many else (5, 3)
    parts = randn(3, 2000, k, d, seed=seed)
    values = parts[0][..., :1] + (0.7 * parts[1][:, :1] if shared else 0) + 1.5 * parts[2]
    found = estimate(values)
    assert 0.88 < float(found.error.square().mean() / found.value.var()) < (1.18 if shared else 1.3)


def test_one_sample_has_no_error_and_one_draw_has_that_of_samples():
    assert math.isnan(estimate(randn(1, 5)).error)
    values = randn(9, 1)
    assert float(estimate(values).error) == pytest.approx(float(values.std() / 3))


def test_a_ratio_of_means_has_the_error_of_the_delta_method():
    upper, lower = randn(4000, 30, 1), 5 + randn(4000, 30, 1, seed=1)
    found = ratio_of_means(upper + lower, lower)
    assert float(found.error.mean() / found.value.std()) == pytest.approx(1, abs=0.1)


@given(st.lists(st.integers(-3, 3), min_size=3, max_size=9), st.data())
def test_rank_correlations_are_scipys_with_ties(one, data):
    other = data.draw(st.lists(st.integers(-3, 3), min_size=len(one), max_size=len(one)))
    found = float(spearman(torch.tensor([one, other]).double())[0, 1])
    if len(set(one)) == 1 or len(set(other)) == 1:
        assert math.isnan(found)
    else:
        assert found == pytest.approx(spearmanr(one, other).statistic)


def test_rank_correlations_do_not_depend_on_the_players_order():
    values, order = randn(2, 7), torch.randperm(7)
    torch.testing.assert_close(spearman(values[:, order]), spearman(values))


def test_the_metric_divides_what_is_left_beyond_noise_by_the_samples_own():
    removal = Removal(torch.tensor([[[3.0]]]), torch.tensor([[10.0]]), torch.tensor([[1.0]]), torch.zeros(1))
    assert float(removal.R.value) == pytest.approx(0.2)
    assert float(removal.unmasked.value) == pytest.approx(0.9)
    assert float(removal.removed.value) == pytest.approx(1 - 0.2 / 0.9)


def test_noise_as_strong_as_the_samples_is_warned_of():
    removal = make_removal(0.5, 1.2, noise=1.1)
    assert doubt(removal) == ("White noise has 110 % of the effects of the samples themselves: R says little.",)
    assert torch.isnan(removal.removed.value).all()


def test_rounding_and_single_samples_are_warned_of():
    found = ab.audit(mlp(3, 2), randn(1, 3), 0, {"a": 0.0, "b": 1.0}, data=randn(9, 3), draws=1)
    assert "One sample has no standard error: pass more samples to get errors." in found.warnings
    fine = make_removal(0.5, 0.9)
    rough = Removal(fine.masked, fine.original, fine.noise, fine.rounding + 0.1)
    assert doubt(rough)[0].startswith("Rounding errors can make up 10 %")
    assert doubt(fine) == ()


def test_a_model_that_does_not_predict_is_warned_of_and_three_warnings_are_enough():
    x, y = randn(40, 3), torch.randint(0, 2, (40,), generator=torch.Generator().manual_seed(0))
    found = ab.audit(mlp(3, 2), x, y, {"far": 99.0, "away": -99.0}, draws=1)
    assert found.warnings[0].startswith("The model predicts no better than the class frequencies")
    assert len(found.warnings) == 3


def test_masked_samples_far_from_the_data_or_outside_its_range_are_warned_of():
    data = randn(300, 3)
    methods = {"far": ab.Baseline(9.0), "mean": ab.Baseline.mean(data), "row": ab.Baseline(data[0])}
    found = ab.audit(mlp(3), data[:10], None, methods, data=data, region=["x0", "x2"])
    assert found.plausibility.outside.tolist() == [[True, True], [False, False], [False, False]]
    assert "far uses values outside the data's range for x0, x2." in found.warnings
    assert [name for name in methods if any(f"{name} makes samples" in w for w in found.warnings)] == ["far"]


def test_distances_are_to_the_nearest_row_in_standard_units():
    data = torch.cartesian_prod(torch.arange(5.0), torch.arange(5.0)) * torch.tensor([1.0, 100.0])
    distance, note = measure_distances(data, seed=0)
    assert note == ""
    assert distance(data[:1] + torch.tensor([0.0, -200.0])) == pytest.approx(2)  # a step of the grid is the usual one
    assert distance(data[:1] + torch.tensor([-1.0, 0.0])) == pytest.approx(1)
    assert measure_distances(torch.ones(9, 2), 0) == (
        None,
        "Distances to the data were not measured: most of its rows are repeated.",
    )
    assert "more than 20,000 entries" in measure_distances(torch.zeros(3, 20_001), 0)[1]
    assert "only 2 rows" in measure_distances(torch.zeros(2, 2), 0)[1]


def test_a_player_is_outside_if_any_of_its_entries_is():
    players = ab.Players.groups({"a": [0, 1], "b": [2]}, 4)
    masked = [None, torch.tensor([[[0.5, 2.0, 0.5, 9.0]]])]
    data = torch.tensor([[0.0] * 4, [1.0] * 4])
    found, note = compare_with_data(masked, data, data_range(data), players, 0)
    assert found.outside.tolist() == [[False, False], [True, False]]
    assert "only 2 rows" in note


@pytest.fixture(scope="module")
def found():
    x = torch.rand(40, 4, generator=torch.Generator().manual_seed(0)).double()
    methods = {"zero": ab.Baseline(0.0), "rows": ab.Marginal(x), "half": ab.Baseline(0.5)}
    return ab.audit(mlp(4), x, None, methods, region=["x1", "x2", "x3"], draws=2)


@pytest.mark.slow
def test_it_is_saved_and_loaded_whole(found, tmp_path):
    found.save(tmp_path / "audit.safetensors")
    loaded = ab.Audit.load(tmp_path / "audit.safetensors")
    assert loaded.record == found.record
    assert repr(loaded) == repr(found)
    for name, values in found.columns().items():
        assert torch.allclose(loaded.columns()[name], values, equal_nan=True), name
    torch.testing.assert_close(loaded.companions.shapley, found.companions.shapley, rtol=0, atol=0, equal_nan=True)
    assert loaded.plausibility.outside.dtype == torch.bool
    assert [path.name for path in tmp_path.iterdir()] == ["audit.safetensors"]


OLD = Path(__file__).parent / "old_files"


def test_audits_of_older_versions_are_read():
    audit = ab.Audit.load(OLD / "audit.safetensors")
    assert audit.methods == ("zero", "learned")
    assert audit.players == audit.region == ("x0", "x1", "x2")
    assert audit.R.value.tolist() == pytest.approx([0.94386, -0.39293], abs=1e-5)
    assert audit.record.costs["zero"] == Cost(120, 0.009204657000054794)
    assert audit.record.evaluations == 400
    assert audit.record.absences["zero"] == "Baseline(0)"
    assert audit.recommended is None
    assert audit.verdict == ("No recommendation: leak and invention were not measured. Run the audit again.",)
    assert audit.order == (0, 1)
    assert audit.columns()["leak"].isnan().all()
    assert audit.columns()["invention"].isnan().all()
    assert math.isnan(audit.confidence)
    assert len(audit.plot().axes) == 3
    third = ab.load(OLD / "audit_format3.safetensors")
    assert third.R.value.tolist() == pytest.approx([2.2843, -0.8196], abs=1e-4)
    assert third.recommended is None
    assert third.columns()["score_error"].isnan().all()
    cross = ab.CrossAudit.load(OLD / "cross_audit.safetensors")
    assert cross.references == ("white noise", "zero", "learned")
    assert torch.allclose(cross.R[0], audit.R.value)
    assert cross.record.evaluations == 960
    assert "960 evaluations" in repr(cross)


def test_a_saved_audit_keeps_any_name(tmp_path):
    found = ab.audit(mlp(3), randn(6, 3), None, {"tensor": 0.0}, draws=1)
    found.save(tmp_path / "audit")
    assert repr(ab.Audit.load(tmp_path / "audit")) == repr(found)


def test_a_cross_audit_is_saved_and_loaded_whole(tmp_path):
    found = ab.cross_audit(mlp(3), randn(6, 3), None, {"zero": 0.0, "one": 1.0}, draws=2)
    found.save(tmp_path / "cross")
    loaded = ab.CrossAudit.load(tmp_path / "cross")
    assert repr(loaded) == repr(found)
    assert loaded.record == found.record
    assert torch.equal(loaded.R, found.R)


def test_other_files_get_a_sentence(found, tmp_path):
    with pytest.raises(ab.AbsentiaError, match="path must name a file that exists"):
        ab.Audit.load(tmp_path / "none")
    (tmp_path / "text").write_text("no audit")
    with pytest.raises(ab.AbsentiaError, match="can't be read"):
        ab.Audit.load(tmp_path / "text")
    save_file({"a": torch.zeros(1)}, tmp_path / "plain")
    with pytest.raises(ab.AbsentiaError, match="no header of absentia's"):
        ab.Audit.load(tmp_path / "plain")
    write_tensors(tmp_path / "other", {"values": torch.zeros(1)}, {"format": 1})
    with pytest.raises(ab.AbsentiaError, match="path must hold a saved audit"):
        ab.Audit.load(tmp_path / "other")
    found.save(tmp_path / "new")
    tensors, header = read_tensors(tmp_path / "new")
    write_tensors(tmp_path / "new", tensors, header | {"format": 99})
    with pytest.raises(ab.AbsentiaError, match="Install a newer absentia"):
        ab.Audit.load(tmp_path / "new")
    with pytest.raises(ab.AbsentiaError, match="lie in a folder that exists"):
        found.save(tmp_path / "nowhere" / "audit")


def test_a_frame_has_a_row_for_each_method_and_a_column_for_each_figure(found):
    pytest.importorskip("pandas")
    frame = found.to_frame()
    assert list(frame.index) == ["zero", "rows", "half"]
    assert frame.index.name == "method"
    assert frame["R"].tolist() == found.R.value.tolist()
    assert frame["R_error"].tolist() == found.R.error.tolist()
    assert {"removed", "strength_error", "salient", "terms", "low_orders", "empty_value", "agreement"} <= {*frame}
    agreement = found.companions.agreement()
    assert frame["agreement"]["zero"] == pytest.approx(float(agreement[0, 1:].mean()))


def test_pandas_that_is_not_there_gets_a_sentence(found, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ab.AbsentiaError, match=r"needs the package pandas. Run pip install 'absentia\[tables\]'"):
        found.to_frame()


def test_the_picture_shows_all_methods_in_one_order(found, tmp_path):
    figure = found.plot(tmp_path / "audit.png")
    assert (tmp_path / "audit.png").stat().st_size > 10_000
    masked, _, curve = figure.axes
    ordered = [found.methods[number] for number in found.order]
    assert ordered[0] == found.recommended
    assert [label.get_text() for label in masked.get_yticklabels()] == ordered
    assert [label.get_fontweight() for label in masked.get_yticklabels()] == ["bold", "normal", "normal"]
    legend = [text.get_text() for text in curve.get_legend().get_texts()]
    assert legend == [*ordered, "without inventions", "prior: knows nothing"]
    with pytest.raises(ab.AbsentiaError, match="lie in a folder that exists"):
        found.plot(tmp_path / "nowhere" / "audit.png")


def test_it_reads_well_in_a_terminal(found):
    text = repr(found)
    lines = text.splitlines()
    assert lines[0].startswith(f"Use {found.recommended} ")
    assert f"{100 * found.confidence:.0f} %" in lines[0]
    assert "Audit of 3 absences on 40 samples: 3 of 4 players masked; value: the output as it is." in text
    assert max(len(line) for line in lines) <= 130
    assert text.index("length") < text.index("Audit of 3")
    assert " R" not in text
    assert "The data's range was taken from the audited samples" in " ".join(text.split())
    for name in found.methods:
        assert sum(line.startswith(f"{name} ") for line in lines) == 1


def test_notebooks_see_names_as_text():
    script = "<script>alert(1)</script>"
    methods = {script: ab.Baseline(0.0), "one": ab.Baseline(1.0)}
    players = ab.Players.features([script, "b", "c"])
    settings = {"players": players, "draws": 2}
    for found in (
        ab.audit(mlp(3), randn(6, 3), None, methods, **settings),
        ab.cross_audit(mlp(3), randn(6, 3), None, methods, **settings),
    ):
        html = found._repr_html_()
        assert "<script" not in html
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
        assert "absences on 6 samples" in html


def test_the_record_says_what_each_method_is():
    x = torch.rand(6, 3, generator=torch.Generator().manual_seed(0)).double()
    methods = {"none": ab.Baseline(0.0), "half": ab.Baseline(0.5)}
    found = ab.audit(lambda rows: rows.prod(1), x, None, methods)
    assert found.record.absences == {"none": "Baseline(0)", "half": "Baseline(0.5)"}
