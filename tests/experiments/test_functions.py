"""The paper's functions: their notation, the rule for their truth, and the families with known values."""

import itertools
import math
import os
import re
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import absentia as ab
from absentia.coalitions import enumerate_coalitions
from experiments.function_families import HIGH, LOW, generate_functions, tsang_functions
from experiments.functions import SigmoidTerm, activated_states, parse_function, parse_terms, read_functions
from experiments.known_shapley import addition_multiplication
from experiments.worked_examples import worked_examples

# The variables, numbered from 1, whose true baseline value is 1 in each function that the paper prints.
PRINTED = {
    # The main text, apart from the line of test_the_one_printed_truth_that_breaks_the_rule.
    "-0.185*a*(b+c)^2.432|-d*e*f*g": set(),
    "-sigmoid(+4a-4b+4c-6.00)|-d*e*f*g|-h*i*j": {2},
    "+sigmoid(3a*b-3c-1.5)|-d*e|+0.25*(f+g)^2": {3},
    # The examples that the appendix explains.
    "+a*b*c|+sigmoid(d+e-0.5)": {4, 5},
    "-a*b*c|+(d+e)^3": set(),
    "(a+b-c)^3": {3},
    # The table of the appendix.
    "-0.185*a*(b+c)^2.432|-d*e*f*g*h*i*j*k": set(),
    "-sigmoid(-4a-4b-4c+2)|-0.011*d*(e+f+g+h+i+j+k)^2.341": {1, 2, 3},
    "+0.172*a*b*c*(d+e)^2.543|-0.171*f*(g+h)^2.545|-0.093*(i+j+k)^2.157": set(),
    "-sigmoid(+5a+5b*c*d-7.5)|-sigmoid(-8e*f+8g+4)|+h*i*j*k": {7},
    "-a*b*c|+0.156*(d+e+f)^1.693|-g*h*i*j": set(),
    "+sigmoid(-3a*b*c+1.5)|+0.197*d*e*(f+g+h)^1.48|+i*j*k": set(),
    "-sigmoid(+5a-5b*c+2.5)|-sigmoid(+3d*e*f*g-1.5)|-0.365*h*(i+j)^1.453": {1},
    "+sigmoid(+4a-4b-4c+6)|-sigmoid(-6d*e*f*g+3)|-sigmoid(+6h-6i*j+3)": {1, 8},
    "-a*b*c|+0.205*d*(e+f)^2.289|-0.115*(g+h+i)^1.969|+j*k*l": set(),
    "-sigmoid(-3a*b*c-3d*e+4.5)|-sigmoid(+3f+3g+3h-1.5)|+i*j*k": {6, 7, 8},
    "-sigmoid(+8a*b-8c-8d-4)|-0.041*(e+f+g+h)^2.298|-sigmoid(+7i*j+7k-10.5)": {3, 4},
    "-sigmoid(+4a-4b+4c-6)|-d*e*f*g|-h*i*j*k": {2},
    "+sigmoid(+3a*b+3c-3d-3e-3f-4.5)|+sigmoid(+6g*h+6i*j*k-9)": {4, 5, 6},
    "-sigmoid(-7a*b-7c*d+10.5)|+sigmoid(-5e+5f-5g*h-5i+12.5)|+j*k*l": {6},
    "+sigmoid(-6a+6b+6c+3)|+0.229*d*e*f*(g+h)^2.124|+0.070*i*(j+k+l)^2.418": {2, 3},
    "+a*b*c*d|-sigmoid(-6e*f-6g+9)|+h*i*j*k": set(),
    "+sigmoid(-3a+3b-3c*d-3e*f+7.5)|-0.174*g*(h+i+j)^1.594": {2},
    "-0.34*a*(b+c)^1.557|-sigmoid(+5d*e*f-5g-5h-5i-5j-5k-2.5)": {7, 8, 9, 10, 11},
    "-sigmoid(-8a*b+8c+4)|-d*e*f*g|+0.457*h*(i+j)^1.13": {3},
    "+sigmoid(-6a+6b-6c-3)|+sigmoid(-6d*e-6f+6g+9)|+sigmoid(+4h*i-4j-2)": {1, 3, 7, 10},
}


def sigmoid(argument):
    return 1 / (1 + math.exp(-argument))


# The same functions, written by hand.
BY_HAND = {
    "-0.185*a*(b+c)^2.432|-d*e*f*g": lambda a, b, c, d, e, f, g: -0.185 * a * (b + c) ** 2.432 - d * e * f * g,
    "+sigmoid(3a*b-3c-1.5)|-d*e|+0.25*(f+g)^2": lambda a, b, c, d, e, f, g: (
        sigmoid(3 * a * b - 3 * c - 1.5) - d * e + (f + g) ** 2 / 4
    ),
    "-sigmoid(+4a-4b+4c-6.00)|-d*e*f*g|-h*i*j": lambda a, b, c, d, e, f, g, h, i, j: (
        -sigmoid(4 * a - 4 * b + 4 * c - 6) - d * e * f * g - h * i * j
    ),
    "+0.172*a*b*c*(d+e)^2.543|-0.093*(f+g+h)^2.157": lambda a, b, c, d, e, f, g, h: (
        0.172 * a * b * c * (d + e) ** 2.543 - 0.093 * (f + g + h) ** 2.157
    ),
    "(a+b-c)^3|-c": lambda a, b, c: (a + b - c) ** 3 - c,
}


def all_inputs(function):
    low, high = function.inputs
    return low + (high - low) * enumerate_coalitions(function.players).double()


def check_finite_with_gradient(function, rows):
    rows = rows.clone().requires_grad_()
    values = function.model(rows)
    (gradient,) = torch.autograd.grad(values.sum(), rows)
    assert values.shape == rows.shape[:1]
    assert values.dtype == rows.dtype
    assert torch.isfinite(values).all()
    assert torch.isfinite(gradient).all()
    return gradient


@pytest.mark.parametrize("line", list(BY_HAND))
def test_a_line_means_what_it_says(line):
    function = parse_function(line)
    rows = torch.cat([all_inputs(function), torch.rand(20, function.players, dtype=torch.float64)])
    expected = [BY_HAND[line](*row) for row in rows.tolist()]
    torch.testing.assert_close(function.model(rows), torch.tensor(expected, dtype=torch.float64))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("line", list(PRINTED))
def test_values_and_gradients_of_printed_functions_are_finite(line, dtype):
    function = parse_function(line)
    check_finite_with_gradient(function, all_inputs(function).to(dtype))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "must have a variable in column 1. Got the end of the line instead"),
        ("+a*", "must have a variable in column 4. Got the end of the line instead"),
        ("+a|", "must have a variable in column 4"),
        ("+A", "must have a variable in column 2. Got 'A' instead"),
        ("+a^2", "must have | or its end in column 3. Got '^' instead"),
        ("+a b", "must have | or its end in column 3. Got ' ' instead"),
        ("+3a", "must have * in column 3. Got 'a' instead"),
        ("+a*(b+c)", "must have ^ in column 9. Got the end of the line instead"),
        ("+(a+b)^", "must have a power in column 8"),
        ("+(a+b)^0.5", "must have a power of at least 1. Got 0.5 instead"),
        ("+(a-b)^1.5", "must have a whole power of at least 1. Got 1.5 instead"),
        ("+sigmoid(3a3b)", "must have ) in column 12. Got '3' instead"),
        ("+sigmoid(+3a", "must have ) in column 13"),
        ("+sigmoid()", "must have a variable in column 10. Got ')' instead"),
        ("+sigmoid(1.5)", "must have a variable in every sigmoid. Got a constant instead"),
        ("+" + "*".join("abcdefghijklmnopqrstu"), "must have at most 20 variables in a term"),
    ],
)
def test_what_cannot_be_read_is_refused(line, message):
    with pytest.raises(ab.AbsentiaError, match=re.escape(f"line 7 {message}")):
        parse_function(line, "line 7")


def test_a_file_is_read_line_by_line(tmp_path):
    path = tmp_path / "functions.txt"
    path.write_text("+a*b\n\n-sigmoid(-4a-4b+2.00)\n")
    assert [(f.name, f.truth) for f in read_functions(path)] == [("line 1", (0, 0)), ("line 3", (1, 1))]


def test_an_absent_file_is_refused(tmp_path):
    with pytest.raises(ab.AbsentiaError, match=r"path must be a file of functions, one per line\. Got .*none"):
        read_functions(tmp_path / "none")


@pytest.mark.parametrize(("line", "ones"), list(PRINTED.items()))
def test_the_rule_gives_the_printed_truth(line, ones):
    truth = parse_function(line).truth
    assert truth == tuple(float(number in ones) for number in range(1, len(truth) + 1))


def test_the_one_printed_truth_that_breaks_the_rule():
    # The main text prints 1 for the sigmoid's variables. All of them at 1 is its one state below one half, so by
    # the rule it is 0, as the appendix prints for sigmoid(-3a*b*c+1.5) and for -sigmoid(-6d*e*f*g+3).
    assert parse_function("-a*b*c|+sigmoid(-5d*e*f*g+2.50)|-h*i").truth == (0.0,) * 9


@pytest.mark.parametrize(
    ("line", "truth"),
    [
        ("+sigmoid(+3a-1.50)", (None,)),  # its sides are equally frequent
        ("+sigmoid(+a+b+5)", (None, None)),  # one side is never reached
        ("(a-b)^2", (None, None)),  # largest at (1, 0) and at (0, 1)
        ("+a*b|+sigmoid(-4b-4c+2)", (0.0, None, 1.0)),  # the terms of b disagree
        ("+a*c", (0.0, None, 0.0)),  # b is not used
    ],
)
def test_what_the_rule_leaves_open_has_no_truth(line, truth):
    assert parse_function(line).truth == truth


def test_unknown_values_are_filled_in():
    assert parse_function("-a*c").baseline(unknown=0.25).tolist() == [0.0, 0.25, 0.0]


@pytest.fixture
def released():
    folder = os.environ.get("ABSENTIA_DATA")
    if folder is None:
        pytest.skip("ABSENTIA_DATA does not name a data folder")
    path = Path(folder) / "synthetic_functions" / "functions.txt"
    if not path.is_file():
        pytest.skip(f"no {path}")
    return read_functions(path)


def test_the_counts_are_those_behind_the_papers_accuracies(released):
    truth = [value for function in released for value in function.truth]
    assert len(released) == 100
    assert len(truth) == 1235
    assert (truth.count(0.0), truth.count(1.0)) == (1135, 100)


def test_values_and_gradients_of_released_functions_are_finite(released):
    for function in released:
        check_finite_with_gradient(function, all_inputs(function)[::7])


POWER = r"0\.\d{3}\*(?:[a-o]\*)*\([a-o](?:\+[a-o])+\)\^[123]\.\d{3}"
PRODUCT = r"[a-o](?:\*[a-o])+"
SIGMOID = r"sigmoid\((?:[+-][3-8][a-o](?:\*[a-o])*)+[+-]\d+\.[05]0\)"
TERM = re.compile(f"[+-](?:{POWER}|{PRODUCT}|{SIGMOID})")


def test_a_seed_decides_the_generated_functions():
    assert generate_functions(20, seed=3) == generate_functions(20, seed=3)
    assert generate_functions(20, seed=3) != generate_functions(20, seed=4)


def test_generated_functions_look_like_the_released_ones():
    functions = generate_functions(200, seed=0)
    lines = [function.text for function in functions]
    terms = [term for line in lines for term in line.split("|")]
    truth = [value for function in functions for value in function.truth]
    assert {function.players for function in functions} == set(range(10, 16))
    assert {line.count("|") + 1 for line in lines} == {1, 2, 3, 4, 5}
    assert all(TERM.fullmatch(term) for term in terms)
    assert not any(term.startswith("0.000", 1) for term in terms)
    # Of the released: 48 % sigmoids, 27 % powers, 8.1 % of the truths are 1.
    assert sum("sigmoid" in term for term in terms) / len(terms) == pytest.approx(0.5, abs=0.07)
    assert sum("^" in term for term in terms) / len(terms) == pytest.approx(0.25, abs=0.07)
    assert truth.count(1.0) / len(truth) == pytest.approx(0.08, abs=0.02)
    assert None not in truth


@given(st.integers(0, 2**32))
def test_each_generated_variable_is_in_one_term_that_peaks_near_one(seed):
    (function,) = generate_functions(1, seed)
    terms = parse_terms(function.text)
    assert sorted(itertools.chain(*(term.variables for term in terms))) == list(range(function.players))
    for term in terms:
        peak = term(all_inputs(function)).abs().max().item()
        # The coefficient is rounded to three decimals, so the smallest are off by up to a third.
        assert 0.6 < peak < 1.4


@given(st.integers(0, 2**32))
def test_with_the_true_baseline_masking_any_variable_deactivates_its_term(seed):
    (function,) = generate_functions(1, seed)
    truth = function.baseline(unknown=math.nan)
    for term in parse_terms(function.text):
        assert len(activated_states(term)) == 1
        presence = torch.zeros(2 ** len(term.variables), function.players, dtype=torch.bool)
        presence[:, term.variables] = enumerate_coalitions(len(term.variables))
        values = term(torch.where(presence, 1 - truth, truth)).abs()
        if isinstance(term, SigmoidTerm):
            assert ((values[:-1] > 0.5) != (values[-1] > 0.5)).all()
        else:
            assert (values[:-1] < values[-1]).all()
            assert values[0] == 0


@given(st.integers(0, 2**32))
def test_values_and_gradients_of_generated_functions_are_finite(seed):
    (function,) = generate_functions(1, seed)
    check_finite_with_gradient(function, all_inputs(function)[::5])


def test_generating_no_function_is_refused():
    with pytest.raises(ab.AbsentiaError, match="count must be at least 1"):
        generate_functions(0, seed=0)


# Tsang's functions in the words of the math module.
TSANG = [
    lambda a, b, c, d, e, f, g, h, i, j: (
        math.pi ** (a * b) * math.sqrt(2 * c) - math.asin(d) + math.log(c + e) - (i / j) * math.sqrt(g / h) - b * g
    ),
    lambda a, b, c, d, e, f, g, h, i, j: (
        math.pi ** (a * b) * math.sqrt(2 * c)
        - math.asin(d / 2)
        + math.log(c + e + 1)
        + (i / (1 + j)) * math.sqrt(g / (1 + h))
        - b * g
    ),
    lambda a, b, c, d, e, f, g, h, i, j: (
        math.exp(abs(a - b)) + b * c - c ** (2 * d) + math.log(d * d + e * e + g * g + h * h) + i + 1 / (1 + j * j)
    ),
    lambda a, b, c, d, e, f, g, h, i, j: (
        math.exp(abs(a - b))
        + b * c
        - c ** (2 * d)
        + (a * d) ** 2
        + math.log(d * d + e * e + g * g + h * h)
        + i
        + 1 / (1 + j * j)
    ),
    lambda a, b, c, d, e, f, g, h, i, j: 1 / (1 + a * a + b * b + c * c) + math.exp((d + e) / 2) + f + g + h * i * j,
    lambda a, b, c, d, e, f, g, h, i, j: (
        math.exp(a * b + 1) - math.exp(c + d + 1) + math.cos(e + f - h) + math.hypot(h, i, j)
    ),
    lambda a, b, c, d, e, f, g, h, i, j: (
        (math.atan(a) + math.atan(b)) ** 2
        + max(c * d + f, 0)
        - 1 / (1 + (d * e * f * g * h) ** 2)
        + (g / (1 + i)) ** 5
        + (a + b + c + d + e + f + g + h + i + j)
    ),
    lambda a, b, c, d, e, f, g, h, i, j: (
        a * b + 2 ** (c + e + f) + 2 ** (c + d + e + g) + math.sin(g * math.sin(h + i)) + math.acos(0.9 * j)
    ),
    lambda a, b, c, d, e, f, g, h, i, j: (
        math.tanh(a * b + c * d) * math.sqrt(e)
        + math.exp(e + f)
        + math.log((f * g * h) ** 2 + 1)
        + i * j
        + 1 / (1 + j)
    ),
    lambda a, b, c, d, e, f, g, h, i, j: (
        math.sinh(a + b) + math.acos(math.tanh(c + e + g)) + math.cos(d + e) + 1 / math.cos(g * i)
    ),
]


def test_61_of_tsangs_92_variables_have_a_truth():
    truth = [value for function in tsang_functions() for value in function.truth]
    assert (len(truth) - truth.count(None), truth.count(LOW), truth.count(HIGH)) == (61, 41, 20)
    inside = torch.rand(5, 10, dtype=torch.float64)
    used = [check_finite_with_gradient(f, inside).abs().amax(0) > 0 for f in tsang_functions()]
    assert sum(int(variables.sum()) for variables in used) == 92
    for function, variables in zip(tsang_functions(), used, strict=True):
        assert all(variables[i] for i, value in enumerate(function.truth) if value is not None)


@pytest.mark.parametrize(("function", "by_hand"), list(zip(tsang_functions(), TSANG, strict=True)))
def test_a_function_of_tsang_computes_what_is_printed(function, by_hand):
    rows = LOW + (HIGH - LOW) * torch.rand(30, 10, dtype=torch.float64)
    expected = torch.tensor([by_hand(*row) for row in rows.tolist()], dtype=torch.float64)
    torch.testing.assert_close(function.model(rows), expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("function", tsang_functions(), ids=lambda function: function.name)
def test_values_and_gradients_of_tsang_functions_are_finite(function, dtype):
    inside = LOW + (HIGH - LOW) * torch.rand(500, 10, dtype=torch.float64)
    check_finite_with_gradient(function, torch.cat([all_inputs(function), inside]).to(dtype))


def shapley(case, baseline):
    game = ab.MaskedModel(case.function.model, case.x[None], absence=ab.Baseline(baseline))
    return ab.shapley(game).values[0]


def test_a_seed_decides_the_sums_of_products_and_their_samples():
    first, again, other = (addition_multiplication(20, seed=seed) for seed in (0, 0, 1))
    assert [(c.function, c.x.tolist()) for c in first] == [(c.function, c.x.tolist()) for c in again]
    assert [c.function for c in first] != [c.function for c in other]


@pytest.mark.parametrize("unknown", [0.0, 0.7])
@pytest.mark.parametrize("lone", [0.0, 0.9])
def test_shapley_values_with_the_true_baseline_are_the_true_ones(unknown, lone):
    for case in addition_multiplication(15, seed=5, lone=lone):
        torch.testing.assert_close(shapley(case, case.function.baseline(unknown)), case.shapley)


def test_sums_of_products_look_like_the_printed_ones():
    cases = addition_multiplication(300, seed=0)
    truth = [value for case in cases for value in case.function.truth]
    products = [product for case in cases for product in case.function.model.products]
    used = [variable for case in cases for p in case.function.model.products for variable in p.variables]
    assert all(case.function.players == 8 for case in cases)
    assert len(used) == len(truth) - truth.count(None)
    assert all(0.5 <= abs(product.coefficient) <= 5 for product in products)
    assert all(value is None or (0 <= value < 1 and value == round(value, 2)) for value in truth)
    assert torch.stack([case.x for case in cases]).mean().item() == pytest.approx(0.7, abs=0.03)


def test_variables_are_in_one_product_each():
    for case in addition_multiplication(50, seed=2, lone=0.0):
        variables = [v for product in case.function.model.products for v in product.variables]
        assert len(variables) == len(set(variables)) > 0


def test_no_factor_is_alone():
    cases = [case for seed in range(3) for case in addition_multiplication(60, seed=seed, players=5, lone=0.0)]
    sizes = [len(product.variables) for case in cases for product in case.function.model.products]
    assert min(sizes) == 2
    assert max(len(case.function.model.products) for case in cases) > 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"count": 0}, "count must be at least 1"),
        ({"players": 1}, "players must be at least 2"),
        ({"lone": 1.5}, "lone must be a share, from 0 to 1"),
    ],
)
def test_what_cannot_be_drawn_is_refused(arguments, message):
    with pytest.raises(ab.AbsentiaError, match=message):
        addition_multiplication(**{"count": 1, "seed": 0, **arguments})


# How exactly the values are printed, and how exactly the last row of the table, which has sampling errors.
@pytest.fixture(params=[(0, 0.0051, 0.001), (1, 0.00011, 0.0002), (2, 0.00011, 0.0002)], ids=["1", "2", "3"])
def printed(request):
    number, exact, sampled = request.param
    return worked_examples()[number], exact, sampled


def assert_near(values, printed_values, tolerance):
    expected = torch.tensor(printed_values, dtype=torch.float64)
    torch.testing.assert_close(values, expected, atol=tolerance, rtol=0)


def test_the_printed_truth_is_the_true_one(printed):
    example, exact, _ = printed
    assert_near(example.case.shapley, example.truth, exact)


def test_the_printed_zero_and_mean_come_out_with_a_mean_of_a_half(printed):
    example, exact, _ = printed
    assert_near(shapley(example.case, 0.0), example.zero, exact)
    assert_near(shapley(example.case, 0.5), example.mean, exact)  # the paper's text says 0.7


def test_the_printed_setting_in_shap_is_128_times_too_small(printed):
    example, _, sampled = printed
    # The functions are linear in each of the independent inputs: their mean over these is the value at 0.7.
    assert_near(shapley(example.case, 0.7) / 128, example.shap, sampled)
