"""The section of an explanation."""

from dataclasses import replace

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import absentia as ab
import small_results as results
from absentia.report.explanation_section import explanation_section
from absentia.report.shown_values import MOST_SAMPLES
from absentia.text import written
from rendered_pages import render


@pytest.mark.slow
def test_images_of_two_axes_are_shown_as_images(tmp_path):
    """Segments of (height, width) are areas; tokens with their embeddings are not."""
    segments = ab.Players.segments(torch.tensor([[0, 0, 1], [0, 1, 1]]))
    drawn = ab.explain(
        lambda rows: rows.sum((1, 2)), results.draw(2, 2, 3), players=segments, absence=ab.Baseline(0.0)
    )
    tokens = ab.Players.tokens(2, embedding=3)
    told = ab.explain(lambda rows: rows.sum((1, 2)), results.draw(2, 2, 3), players=tokens, absence=ab.Baseline(0.0))
    first, second = render([drawn, told], tmp_path).data()
    assert first["picture"]["labels"] == [0, 0, 1, 0, 1, 1]
    assert first["samples"][1]["image"].startswith("data:image/png")
    assert "picture" not in second
    assert second["text"]
    assert not first["text"]
    assert len(second["samples"][0]["inputs"][0].split(", ")) == 3


class Largest(TorchDispatchMode):
    """Keep the size in bytes of the largest tensor that is made."""

    size = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {}))
        if isinstance(made, torch.Tensor) and function._schema.returns[0].alias_info is None:  # no view
            self.size = max(self.size, made.numel() * made.element_size())
        return made


def test_images_are_written_one_by_one():
    """A copy of all of them in double precision would take 16 times the memory of what is shown."""
    images = results.draw(20, 3, 64, 64).float()
    players = ab.Players.grid((3, 64, 64), (2, 2))
    found = ab.explain(lambda rows: rows.sum((1, 2, 3)), images, players=players, absence=0.0)
    with Largest() as largest:
        explanation_section(found)
    assert 0 < largest.size <= 8 * images[0].numel()


@pytest.mark.slow
def test_large_results_are_trimmed_and_the_page_says_so(tmp_path):
    many = results.explanation(samples=MOST_SAMPLES + 3)
    page = render(many, tmp_path)
    assert len(page.data()[0]["samples"]) == MOST_SAMPLES
    assert f"first {MOST_SAMPLES} of {MOST_SAMPLES + 3} samples" in page.words()
    few = render(results.explanation(), tmp_path)
    assert "The page holds the first" not in few.words()
    overall = many.shapley.values.abs().mean(0).tolist()
    rows = page.data()[0]["overall"]
    assert sorted(row["player"] for row in rows) == list(range(len(overall)))
    for row in rows:
        mean = overall[row["player"]]  # of all samples, shown or not
        assert row["value"] == pytest.approx(mean, rel=1e-5)
        assert float(row["shown"]) == pytest.approx(mean, abs=1e-3 * max(overall))  # to the decimals of the largest


@pytest.mark.slow
def test_the_page_states_errors_of_estimates_and_what_values_lack(tmp_path):
    players = ab.Players.grid((1, 4, 4), (4, 4))
    x = torch.rand(2, 1, 4, 4, generator=torch.Generator().manual_seed(0))
    found = ab.explain(lambda rows: rows.flatten(1).sum(1) ** 3, x, players=players, absence=0.0, evaluations=120)
    errors = found.shapley.errors
    words = render(found, tmp_path).words()
    assert f"The median standard error of the values is {written(errors.median().item(), 2)}." in words
    assert f"Its standard error is {written(errors.mean(0).max().item(), 2)} at most; whiskers show two." in words
    shown = explanation_section(found).data["overall"]
    means = found.shapley.values.abs().mean(0)
    assert {row["player"] for row in shown} == set(range(16))
    for row in shown:
        player = row["player"]
        assert float(row["shown"]) == pytest.approx(float(means[player]), rel=0.01)
        assert row["value"] == pytest.approx(float(means[player]), rel=1e-5)
        for error in (row["error"], float(row["shownError"])):
            assert error == pytest.approx(float(errors[:, player].mean()), rel=0.05)
    assert "miss the difference" not in words
    wrong = replace(found, shapley=replace(found.shapley, values=found.shapley.values + 1))
    assert "Gap Shapley values miss the difference by" in render(wrong, tmp_path).words()


def test_menu_answer_text_and_picture_write_a_value_alike():
    """Each from the number itself: to three digits 6.8147 is 6.81, and what was rounded to 6.815 would be 6.82."""
    explained = results.explanation()
    explained = replace(explained, outputs=torch.full_like(explained.outputs, -6.8147))
    section = explanation_section(explained)
    assert section.data["samples"][0]["choice"].endswith(": −6.815")
    assert " is −6.815, down from " in section.answer
    assert "−6.815 with all present" in repr(explained)
    assert ab.plots.waterfall(explained).axes[0].get_yticklabels()[-1].get_text() == "all present: −6.815"


def test_the_answer_is_one_sentence_with_the_players_that_add_and_take_most():
    def told(rows, **changes):
        found = ab.explain(lambda x: x @ torch.tensor([3.0, -2.0, 0.5]).double(), rows, absence=0.0, **changes)
        return explanation_section(found).answer

    row = torch.ones(1, 3).double()
    assert told(row) == (
        "Sample 0: the output is 1.5, up from 0 with all players absent; “x0 = 1” adds most (+3.0), "
        "“x1 = 1” takes most (−2.0)."
    )
    end = "down from 0 with all players absent; “x0 = −1” takes most (−3.0), “x1 = −1” adds most (+2.0)."
    assert told(-row).endswith(end)
    assert told(0 * row).endswith("is 0, as with all players absent; no player changes it.")
    assert told(row * torch.tensor([1.0, 0.0, 1.0])).endswith("; “x0 = 1” adds most (+3.0).")
    tiny = row * torch.tensor([1.0, 1e-9, 1.0])
    assert told(tiny).endswith("; “x0 = 1” adds most (+3.0).")  # what is written as 0 takes nothing


def test_the_answer_names_the_class_and_the_category():
    players = ab.Players.features(["city", "age"], {"city": ["Bern", "Oslo"]})
    model = lambda rows: torch.stack([0 * rows[:, 0], 2 * rows[:, 0] - rows[:, 1] / 10], dim=1)  # noqa: E731
    arguments = {"absence": 0.0, "players": players, "class_names": ["stays", "moves"]}
    row = torch.tensor([[1.0, 5.0]])
    for age, name, part in ((5.0, "moves", "adds most (+2.0)"), (45.0, "stays", "takes most (−2.0)")):
        answer = explanation_section(ab.explain(model, [[1.0, age]], **arguments)).answer  # of the predicted class
        assert answer.startswith(f"Sample 0: the log-odds of {name} are ")
        assert f"“city = Oslo” {part}" in answer
    told = ab.explain(model, row, "stays", **arguments)
    start = "Sample 0, stays: the log-odds of stays are −1.5, down from 0 with all players absent; "
    assert explanation_section(told).answer == start + "“city = Oslo” takes most (−2.0), “age = 5” adds most (+0.5)."


def test_samples_are_listed_with_the_names_of_their_classes():
    explained = results.explanation()
    named = replace(explained, record=replace(explained.record, class_names=("cat", "dog", "owl")))
    assert explanation_section(explained).data["samples"][1]["choice"].startswith("sample 1, class 1: ")
    assert explanation_section(named).data["samples"][1]["choice"].startswith("sample 1, dog: ")


def test_very_many_players_leave_room_for_fewer_samples(monkeypatch):
    monkeypatch.setattr("absentia.report.shown_values._MOST_VALUES", 1000)
    assert len(explanation_section(results.wide_explanation(60, 20)).data["samples"]) == 50


def test_estimated_values_by_order_have_errors():
    exact = ab.explain(lambda rows: rows.prod(1), results.draw(2, 3), absence=1.0)
    errors = exact.order_shapley.values.abs() * 2
    errors[:, 0] = 0.001
    estimated = replace(exact, order_shapley=replace(exact.order_shapley, standard_errors=errors).at(0, 2))
    orders = explanation_section(estimated).data["samples"][1]["orders"]
    assert orders["orders"] == [0, 2]
    assert orders["errors"][0] == [0.001, 0.001, 0.001]
    assert orders["errorTexts"][1][2] == written(float(errors[1, 2, 2]), 2)
    assert orders["undetermined"] == [[], [0, 1, 2]]
    assert "errors" not in explanation_section(exact).data["samples"][1]["orders"]
