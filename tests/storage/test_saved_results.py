"""Saved results are read as they were, also those of earlier versions and damaged ones."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

import absentia as ab
from absentia import AbsentiaError
from absentia.learning import LearningOptions
from absentia.storage import Saved, load, read_header, read_tensors, write_tensors

TENSORS = {"a": torch.arange(3.0), "b": torch.tensor([[1, 2]])}
OLD_FILES = Path(__file__).parents[1] / "old_files"


@dataclass(frozen=True, eq=False)
class Inner:
    tensor: torch.Tensor
    names: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Thing(Saved, kind="thing", format=4):
    values: torch.Tensor
    none: torch.Tensor | None
    inner: Inner
    maybe: Inner | None
    costs: dict[str, Inner]
    number: float
    flags: tuple[bool, ...] = ()
    added_later: int = 7
    listed: list[int] = field(default_factory=list)

    @staticmethod
    def from_old(tensors, header):
        tensors |= {"values": tensors["a"], "inner.tensor": tensors["b"]}
        return {"inner": {"names": ["c"]}, "costs": {}, "number": header["format"]}


def thing():
    inner = Inner(torch.arange(4), ("a", "b"))
    return Thing(torch.rand(2, 3)[:, :2], None, inner, inner, {"x": inner}, 0.1, (True, False), listed=[1, 2])


def test_a_result_is_read_as_it_was_saved_with_the_types_of_its_fields(tmp_path):
    saved = thing()
    saved.save(tmp_path / "file", coding={"columns": ["a"]})
    found = Thing.load(tmp_path / "file")
    assert torch.equal(found.values, saved.values)
    assert found.none is None
    assert torch.equal(found.maybe.tensor, saved.maybe.tensor)
    assert isinstance(found.costs["x"], Inner)
    assert torch.equal(found.costs["x"].tensor, saved.inner.tensor)
    assert (found.inner.names, found.number, found.flags, found.listed) == (("a", "b"), 0.1, (True, False), [1, 2])
    assert read_header(tmp_path / "file")["coding"] == {"columns": ["a"]}


def test_a_field_that_a_file_lacks_gets_its_default(tmp_path):
    thing().save(tmp_path / "file")
    tensors, header = read_tensors(tmp_path / "file")
    del header["fields"]["added_later"]
    write_tensors(tmp_path / "older", tensors, header)
    assert Thing.load(tmp_path / "older").added_later == 7


def test_files_of_old_formats_are_read_by_the_class(tmp_path):
    write_tensors(tmp_path / "file", TENSORS, {"kind": "thing", "format": 2})
    found = Thing.load(tmp_path / "file")
    assert torch.equal(found.values, TENSORS["a"])
    assert torch.equal(found.inner.tensor, TENSORS["b"])
    assert (found.inner.names, found.costs, found.number, found.added_later) == (("c",), {}, 2, 7)
    assert found.none is None
    assert found.maybe is None


def test_kinds_and_formats_are_told_apart(tmp_path):
    write_tensors(tmp_path / "new", TENSORS, {"kind": "thing", "format": 5, "version": "9.9"})
    with pytest.raises(AbsentiaError, match=r"format 4 or older. Got format 5 by absentia 9.9 instead. Install a"):
        Thing.load(tmp_path / "new")
    write_tensors(tmp_path / "other", TENSORS, {"kind": "imputer", "format": 1})
    with pytest.raises(AbsentiaError, match=r"path must hold a saved thing. Got .*, a saved imputer instead"):
        Thing.load(tmp_path / "other")
    write_tensors(tmp_path / "picture", TENSORS, {"kind": "picture", "format": 1})
    with pytest.raises(AbsentiaError, match=r"hold a saved .*explanation.* Got .*, a saved picture instead"):
        load(tmp_path / "picture")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("explanation", ab.Explanation),
        ("explanation_groups", ab.Explanation),
        ("explanation_format3", ab.Explanation),
        ("baseline", ab.LearnedBaseline),
        ("baseline_class", ab.LearnedBaseline),
        ("baseline_format1", ab.LearnedBaseline),
        ("audit", ab.Audit),
        ("cross_audit", ab.CrossAudit),
    ],
)
def test_results_saved_by_earlier_versions_are_still_read_and_saved_anew(name, kind, tmp_path):
    found = load(OLD_FILES / f"{name}.safetensors")
    assert isinstance(found, kind)
    found.save(tmp_path / "new")
    assert repr(load(tmp_path / "new")) == repr(found)
    assert read_header(tmp_path / "new")["format"] == kind.FORMAT


def test_an_explanation_saved_by_an_earlier_version_holds_the_same_numbers():
    found = load(OLD_FILES / "explanation.safetensors")
    x = torch.rand(40, 3, generator=torch.Generator().manual_seed(0)).double()[:2]
    model = lambda rows: torch.stack([rows.prod(1), rows[:, 0] - rows[:, 1]], 1)  # noqa: E731
    again = ab.explain(model, x, (x[:, 0] > 0.5).long(), absence=0.25)
    assert torch.allclose(found.shapley.values, again.shapley.values, atol=1e-12)
    assert torch.allclose(found.interactions.effects, again.interactions.effects, atol=1e-12)
    assert found.record.readout == again.record.readout


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
        whole = path.read_bytes()
        shown = repr(ab.load(path))
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
        text.replace('"format": 5', '"format": "3"'),
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
