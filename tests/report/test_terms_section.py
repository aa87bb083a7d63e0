"""The section of terms in a report."""

import pytest
import torch

import absentia as ab
from rendered_pages import render


def game(players):
    weights = torch.linspace(-1, 1, players)
    return ab.MaskedModel(lambda rows: (rows @ weights).tanh(), torch.ones(1, players), absence=0.0)


@pytest.fixture(scope="module")
def index_page(tmp_path_factory):
    index = ab.index(game(30), "FSII", evaluations=200)
    return index, render([index], tmp_path_factory.mktemp("page"))


def test_an_index_that_does_not_add_up_has_no_chart_of_shapley_values(index_page):
    _, page = index_page
    charts = [attributes.get("data-chart") for _, attributes in page.elements if "data-chart" in attributes]
    assert "interactions" in charts
    assert "shapley" not in charts
    assert "All players of the sample" not in page.words()


def test_an_estimated_index_says_how_it_was_estimated(index_page):
    index, page = index_page
    assert index.notes[0] in page.words()
    strongest = max(index.top(1), key=lambda found: abs(found.effect))
    assert f"({strongest.text})" in page.words()
    assert "all others have no effect" not in page.words()


def test_terms_that_add_up_have_a_chart_of_shapley_values(tmp_path):
    page = render([ab.interactions(game(4))], tmp_path)
    charts = [attributes.get("data-chart") for _, attributes in page.elements if "data-chart" in attributes]
    assert "shapley" in charts
    assert "All players of the sample" in page.words()
