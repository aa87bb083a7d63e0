"""Features and scores of sets against loops over their definition."""

import pytest
import torch

from absentia.term_search.features import Basis, extension_scores, features_of

GENERATOR = torch.Generator().manual_seed(0)
COALITIONS = torch.rand(400, 6, generator=GENERATOR) < 0.6
SETS = torch.tensor([[0, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0], [1, 1, 0, 0, 1, 0]]).bool()


def test_harsanyi_features_say_whether_a_set_is_within_a_coalition():
    expected = [[all(row[player] for player in members.nonzero()) for members in SETS] for row in COALITIONS]
    assert features_of(SETS, COALITIONS, Basis.HARSANYI).bool().tolist() == [
        [bool(x) for x in row] for row in expected
    ]


def test_walsh_features_are_products_of_signs():
    signs = COALITIONS.double() * 2 - 1
    expected = torch.stack([signs[:, members].prod(1) for members in SETS], dim=1)
    torch.testing.assert_close(features_of(SETS, COALITIONS, Basis.WALSH).double(), expected)


@pytest.mark.parametrize("basis", Basis)
def test_scores_are_the_dependence_of_residuals_on_each_extended_set(basis):
    residuals = torch.randn(400, generator=GENERATOR).double()
    residuals -= residuals.mean()
    scores = extension_scores(SETS, residuals, COALITIONS, basis)
    for number, members in enumerate(SETS):
        for player in range(6):
            if members[player]:
                assert scores[number, player] == 0
                continue
            extended = members.clone()
            extended[player] = True
            feature = features_of(extended[None], COALITIONS, basis)[:, 0].double()
            deviation = feature.std(correction=0) if basis is Basis.HARSANYI else torch.tensor(1.0)
            expected = (feature @ residuals).abs() / deviation / 400**0.5
            torch.testing.assert_close(scores[number, player], expected.double(), atol=1e-4, rtol=1e-4)


def test_sets_within_few_coalitions_have_no_score():
    coalitions = torch.eye(50).bool()
    scores = extension_scores(torch.eye(50)[:1].bool(), torch.ones(50).double(), coalitions, Basis.HARSANYI)
    assert (scores == 0).all()
