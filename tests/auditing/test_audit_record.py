"""The record of an audit."""

import torch

import absentia as ab


def test_the_record_says_what_each_method_is():
    x = torch.rand(6, 3, generator=torch.Generator().manual_seed(0)).double()
    methods = {"none": ab.Baseline(0.0), "half": ab.Baseline(0.5)}
    found = ab.audit(lambda rows: rows.prod(1), x, None, methods)
    assert found.record.absences == {"none": "Baseline(0)", "half": "Baseline(0.5)"}
