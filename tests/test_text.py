"""Numbers, tables and sentences as text."""

import math

from absentia.text import align, count_of, duration, fold, html_result, html_table, with_error, written, written_alike


def test_numbers_are_written_for_a_reader():
    assert (count_of(1, "sample"), count_of(1200, "sample")) == ("1 sample", "1,200 samples")
    assert [written(-0.12345), written(1234.5, plus=True), written(12345678.0)] == ["−0.123", "+1234", "1.23e+07"]
    assert [written(6.8147), written(6.8147, 4), written(math.inf)] == ["6.81", "6.815", "–"]


def test_figures_are_written_to_their_errors_digits():
    assert with_error(0.12345, 0.0234) == "0.123 ± 0.023"
    assert with_error(-0.12345, 0.0234) == "−0.123 ± 0.023"
    assert with_error(-1234.5, 200.0) == "−1230 ± 200"
    assert with_error(-6.8147, 0.0) == "−6.815 ± 0"
    assert with_error(-6.8147, math.nan) == written(-6.8147) == "−6.81"
    assert with_error(math.nan, 0.1) == "–"


def test_cells_and_notes_are_escaped_in_html():
    assert "<b>" not in html_table(["<b>"], [["<b>"]])
    assert html_result("a", {}, notes=["a < b"]).endswith("a &lt; b</p></div>")


def test_columns_line_up_and_long_sentences_are_folded():
    assert align([["a", "bb"], ["ccc", "d"]], 2) == ["  a    bb", "  ccc  d"]
    assert align([]) == []
    folded = fold("  " + "word " * 40)
    assert all(len(line) <= 118 for line in folded.splitlines())
    assert folded.splitlines()[1].startswith("    word")


def test_numbers_beside_each_other_have_the_same_decimal_place():
    assert written_alike([-12.344, 0.5, 1e-9], plus=True) == ["−12.34", "+0.50", "0"]


def test_times_are_written_in_the_unit_that_suits_them():
    seconds = [0.04, 1.4, 119.4, 120.0, 7000.0, 7200.0, 2 * 86_400.0, 1e9, math.inf]
    assert [duration(time) for time in seconds] == [
        "0.04 s", "1 s", "119 s", "2 min", "117 min", "2 h", "2 days", "11,574 days", "–",
    ]  # fmt: skip
