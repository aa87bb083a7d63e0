"""A report of every kind of result, written once."""

import pytest

import small_results as results
from rendered_pages import render


@pytest.fixture(scope="module")
def everything():
    return {
        results.EVIL: results.explanation(),
        "methods": results.audit(),
        "baseline": results.learned(),
        "images": results.image_explanation(),
        "cross": results.cross_audit(),
    }


@pytest.fixture(scope="module")
def page(everything, tmp_path_factory):
    return render(everything, tmp_path_factory.mktemp("page"), title=f"Title {results.EVIL}")
