"""The result of an audit: table, picture, text and file."""

import math
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

import absentia as ab
from absentia.auditing.audit_record import Cost
from absentia.storage import read_tensors, write_tensors
from known_games import mlp
from seeded_draws import randn


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


OLD = Path(__file__).parents[1] / "old_files"


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


@pytest.mark.slow
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
