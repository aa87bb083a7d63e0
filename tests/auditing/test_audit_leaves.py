"""Audits from the leaves of a model's trees, against audits that run the model."""

from __future__ import annotations

import lightgbm
import numpy as np
import pytest
import torch

import absentia as ab
from absentia.auditing import subject as subjects
from absentia.evaluation.leaf_values import NotFromLeaves

RANDOM = np.random.default_rng(0)
ROWS = RANDOM.normal(size=(300, 6))
TWO = (ROWS[:, 0] * ROWS[:, 1] + ROWS[:, 2] > 0).astype(int)
THREE = TWO + (ROWS[:, 3] > 0.5)
ABSENCES = {"zero": 0.0, "rows": ab.Marginal(torch.from_numpy(ROWS[:5]))}
FIGURES = ("leak", "invention", "score", "length", "R")


def fitted(classes: np.ndarray) -> lightgbm.LGBMClassifier:
    return lightgbm.LGBMClassifier(n_estimators=10, num_leaves=8, verbose=-1).fit(ROWS, classes)


def audited(model: lightgbm.LGBMClassifier, classes: np.ndarray, **settings: object) -> ab.Audit:
    return ab.audit(model, ROWS[:20], classes[:20], absences=ABSENCES, data=ROWS, draws=2, **settings)


def assert_same(first: ab.Audit, second: ab.Audit, rtol: float) -> None:
    for name in FIGURES:
        for ours, theirs in zip(getattr(first, name), getattr(second, name), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("classes", [TWO, THREE], ids=["two classes", "three classes"])
@pytest.mark.parametrize("region", [None, [0, 1, 4]], ids=["all columns", "some columns"])
def test_figures_are_those_of_the_model(
    classes: np.ndarray, region: list[int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = fitted(classes)
    of_leaves = audited(model, classes, region=region)
    assert of_leaves.record.evaluations == 0
    assert any("from the leaves of" in note for note in of_leaves.record.notes)
    monkeypatch.setattr(subjects, "find_leaves_for_audit", lambda *_: NotFromLeaves())
    of_model = audited(model, classes, region=region)
    assert of_model.record.evaluations > 0
    assert_same(of_leaves, of_model, rtol=1e-4)


def test_games_of_all_players_follow_from_leaves() -> None:
    model = fitted(TWO)
    listed = audited(model, TWO, max_players=4)
    tabulated = audited(model, TWO)
    assert listed.companions.by_order.shape[-1] == tabulated.companions.by_order.shape[-1] == 7
    assert listed.record.exact
    for name in ("by_order", "empty", "full", "shapley"):
        ours = getattr(listed.companions, name)[0]  # of "zero", which has a single draw
        theirs = getattr(tabulated.companions, name)[0]
        torch.testing.assert_close(ours[:, :1], theirs[:, :1], rtol=1e-6, atol=1e-8)
    # The search for the length is not the same for listed sets, and the error may rise here and there.
    lengths = listed.companions.terms[0, :, 0] - tabulated.companions.terms[0, :, 0]
    assert float(lengths.abs().max()) <= 2


def test_an_absence_that_depends_on_the_coalition_runs_the_model() -> None:
    absences = {"zero": 0.0, "given the present": ab.GaussianConditional(ROWS, draws=2)}
    audit = ab.audit(fitted(TWO), ROWS[:20], TWO[:20], absences=absences, data=ROWS, draws=2)
    assert audit.record.costs["zero"].evaluations == 0
    assert audit.record.costs["given the present"].evaluations > 0
    assert any("For given the present the model is run" in note for note in audit.record.notes)
