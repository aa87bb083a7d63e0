import pytest
import torch

from experiments.datasets import (
    CENSUS,
    CIFAR10,
    CREDIT,
    CREDIT_COLUMNS,
    FUNCTIONS,
    LOADERS,
    MNIST,
    SST2,
    census,
    credit,
    functions_file,
    stratified_split,
)
from experiments.trained_models import RECIPES
from published import publish

ADULT_DATA = """\
39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, 2174, 0, 40, Cuba, <=50K
50, Private, 83311, HS-grad, 9, Divorced, Sales, Husband, White, Male, 0, 0, 13, United-States, >50K
31, ?, 45781, Masters, 14, Divorced, ?, Wife, Black, Female, 0, 0, 50, ?, >50K

"""
ADULT_TEST = """\
|1x3 Cross validator
25, Private, 226802, 11th, 7, Never-married, Sales, Own-child, Black, Male, 0, 0, 40, United-States, <=50K.
44, Without-pay, 160323, HS-grad, 9, Divorced, Sales, Husband, White, Male, 7688, 0, 40, United-States, >50K.

"""
GERMAN_NAMES = (
    "laufkont laufzeit moral verw hoehe sparkont beszeit rate famges buerge wohnzeit verm alter weitkred wohn"
    " bishkred beruf pers telef gastarb kredit"
)


def credit_text(good=10, bad=5):
    rows = [[row + column for column in range(20)] + [int(row < good)] for row in range(good + bad)]
    return "\n".join([GERMAN_NAMES] + [" ".join(map(str, row)) for row in rows]) + "\n"


def raw(table, x):
    return x * table.std + table.mean


def test_census_skips_the_remark_and_the_full_stops_of_its_test_file(data):
    table = census(publish(data, CENSUS, ADULT_DATA, ADULT_TEST))
    assert table.name == "census"
    assert table.x_train.shape == (3, 12)
    assert table.x_test.shape == (2, 12)
    assert table.class_names == ("<=50K", ">50K")
    assert table.y_train.tolist() == [0, 1, 1]
    assert table.y_test.tolist() == [0, 1]


def test_census_has_the_twelve_columns_of_the_paper(data):
    table = census(publish(data, CENSUS, ADULT_DATA, ADULT_TEST))
    assert len(table.feature_names) == 12
    assert not {"fnlwgt", "education"} & set(table.feature_names)
    ages = raw(table, table.x_train)[:, table.feature_names.index("age")]
    assert ages.tolist() == pytest.approx([39, 50, 31])
    hours = raw(table, table.x_test)[:, table.feature_names.index("hours-per-week")]
    assert hours.tolist() == pytest.approx([40, 40])


def test_census_numbers_categories_in_sorted_order_with_the_missing_one_among_them(data):
    table = census(publish(data, CENSUS, ADULT_DATA, ADULT_TEST))
    column = table.feature_names.index("workclass")
    assert column in table.categorical
    # ? < Private < State-gov < Without-pay, of which the last is found in the test rows only.
    assert raw(table, table.x_train)[:, column].tolist() == pytest.approx([2, 1, 0], abs=1e-5)
    assert raw(table, table.x_test)[:, column].tolist() == pytest.approx([1, 3], abs=1e-5)
    assert [table.feature_names[i] for i in table.categorical] == [
        *("workclass", "marital-status", "occupation", "relationship", "race", "sex", "native-country")
    ]


def test_columns_are_standardised_by_the_training_rows_and_constant_ones_are_zero(data):
    table = census(publish(data, CENSUS, ADULT_DATA, ADULT_TEST))
    constant = table.feature_names.index("capital-loss")
    assert table.std[constant] == 1
    assert (table.x_train[:, constant] == 0).all()
    spread = table.x_train.std(0, correction=0)
    spread[constant] = 1
    torch.testing.assert_close(spread, torch.ones(12))
    torch.testing.assert_close(table.x_train.mean(0), torch.zeros(12), atol=1e-6, rtol=0)


def test_credit_keeps_the_published_codes_and_splits_each_class(data):
    table = credit(publish(data, CREDIT, credit_text()))
    assert table.feature_names == CREDIT_COLUMNS
    assert table.x_train.shape == (12, 20)
    assert table.x_test.shape == (3, 20)
    assert (table.y_train.sum(), table.y_test.sum()) == (8, 2)
    assert [table.feature_names[i] for i in range(20) if i not in table.categorical] == ["duration", "amount", "age"]
    rows = torch.cat([raw(table, table.x_train), raw(table, table.x_test)])
    torch.testing.assert_close(rows[:, 0].sort().values, torch.arange(15.0))
    torch.testing.assert_close(rows[:, 19] - rows[:, 0], torch.full((15,), 19.0))
    labels = torch.cat([table.y_train, table.y_test])
    assert torch.equal(labels, (rows[:, 0].round() < 10).long())


def test_the_split_is_fixed_by_its_seed(data):
    source = publish(data, CREDIT, credit_text())
    assert torch.equal(credit(source).x_test, credit(source, seed=0).x_test)
    assert not torch.equal(credit(source).x_train, credit(source, seed=1).x_train)


def test_a_stratified_split_uses_every_row_once_in_an_order_of_its_own():
    labels = torch.tensor([1] * 70 + [0] * 30)
    kept, held_out = stratified_split(labels, share=0.2, seed=3)
    assert torch.equal(torch.cat([kept, held_out]).sort().values, torch.arange(100))
    assert labels[held_out].sum() == 14
    assert len(held_out) == 20
    assert labels[kept[:20]].unique().numel() == 2


def test_functions_file_is_the_path_of_the_file(data):
    source = publish(data, FUNCTIONS, "+a*b\n-c\n")
    assert functions_file(source).read_text() == "+a*b\n-c\n"


@pytest.mark.parametrize("source", [CENSUS, CREDIT, MNIST, CIFAR10, SST2, FUNCTIONS], ids=lambda source: source.name)
def test_records_say_where_each_file_comes_from(source):
    assert source.licence
    assert source.citation
    for file in source.files:
        assert file.checksum.startswith("sha256:")
        assert (file.address or "").startswith("https://") != bool(file.by_hand)


def test_there_is_a_loader_for_every_data_set_that_networks_are_trained_on():
    assert list(LOADERS) == list(RECIPES)


@pytest.mark.real_data
def test_the_real_census():
    table = census()
    assert table.x_train.shape == (CENSUS.files[0].shape[0], 12) == (32561, 12)
    assert table.x_test.shape == (CENSUS.files[1].shape[0], 12) == (16281, 12)
    assert (table.y_train.sum(), table.y_test.sum()) == (7841, 3846)
    assert torch.isfinite(table.x_train).all()
    torch.testing.assert_close(table.x_train.std(0, correction=0), torch.ones(12), atol=1e-4, rtol=0)
    countries = raw(table, table.x_train)[:, table.feature_names.index("native-country")].round().unique()
    assert len(countries) == 42  # 41 and the missing one


@pytest.mark.real_data
def test_the_real_credit():
    table = credit()
    labels = torch.cat([table.y_train, table.y_test])
    assert (len(labels), table.x_train.shape[1] + 1) == CREDIT.files[0].shape
    assert (labels.sum(), (1 - labels).sum()) == (700, 300)
    assert (table.y_test.sum(), (1 - table.y_test).sum()) == (140, 60)


@pytest.mark.real_data
def test_the_real_functions():
    assert len(functions_file().read_text().splitlines()) == FUNCTIONS.files[0].shape[0]
