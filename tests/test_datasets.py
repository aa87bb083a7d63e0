import builtins
import hashlib
import os
import zipfile
from dataclasses import replace

import pytest
import torch

from absentia import AbsentiaError
from absentia.papers.datasets import (
    CENSUS,
    CREDIT,
    CREDIT_COLUMNS,
    FUNCTIONS,
    cache_folder,
    census,
    credit,
    functions_file,
    locate,
    stratified_split,
)

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


def publish(folder, source, *texts):
    """Write files of a data set's form, and make the record that vouches for them."""
    files = []
    for file, text in zip(source.files, texts, strict=True):
        path = folder / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        files.append(replace(file, checksum="sha256:" + hashlib.sha256(text.encode()).hexdigest()))
    return replace(source, files=tuple(files))


@pytest.fixture
def data(tmp_path, monkeypatch):
    """An ABSENTIA_DATA folder, beside an empty cache."""
    monkeypatch.setenv("ABSENTIA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("ABSENTIA_DATA", str(tmp_path / "data"))
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


@pytest.fixture
def offline(monkeypatch):
    pooch = pytest.importorskip("pooch")

    def refuse(*_arguments, **_options):
        raise ConnectionError("the network is unreachable")

    monkeypatch.setattr(pooch, "retrieve", refuse)


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


def test_an_altered_file_is_refused_in_one_sentence(data):
    publish(data, CREDIT, credit_text())
    with pytest.raises(AbsentiaError) as refusal:
        credit()
    sentence = str(refusal.value)
    assert str(data / CREDIT.files[0].path) in sentence
    assert "must have the sha256 checksum 5f363343" in sentence
    assert f"Replace it from {CREDIT.files[0].address}." in sentence


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize(("load", "source"), [(census, CENSUS), (credit, CREDIT)])
def test_a_missing_file_without_network_names_the_address_and_the_place(data, load, source):
    with pytest.raises(AbsentiaError) as refusal:
        load()
    sentence = str(refusal.value)
    assert source.files[0].address in sentence
    assert str(cache_folder() / source.files[0].path) in sentence
    assert "Got ConnectionError (the network is unreachable) instead." in sentence
    assert f"{source.files[0].path} in a folder that ABSENTIA_DATA names." in sentence
    assert isinstance(refusal.value.__cause__, ConnectionError)


@pytest.mark.usefixtures("offline")
def test_the_functions_are_placed_by_hand(data):
    with pytest.raises(
        AbsentiaError, match=r"functions\.txt must be placed by hand at .*Got no such file"
    ) as refusal:
        functions_file()
    assert "https://github.com/zzp1012/faithful-baseline-value" in str(refusal.value)


@pytest.mark.usefixtures("offline")
def test_a_file_in_the_cache_needs_neither_network_nor_variable(data, monkeypatch):
    monkeypatch.delenv("ABSENTIA_DATA")
    source = publish(cache_folder(), CREDIT, credit_text())
    assert credit(source).x_train.shape == (12, 20)


def test_a_data_folder_that_does_not_exist_is_refused(data, monkeypatch):
    monkeypatch.setenv("ABSENTIA_DATA", str(data / "typo"))
    with pytest.raises(AbsentiaError, match=r"ABSENTIA_DATA must name a folder\. Got '.*typo' instead\."):
        locate(CREDIT.files[0])


def test_a_plain_file_is_downloaded_with_its_checksum(data, monkeypatch):
    pooch = pytest.importorskip("pooch")
    asked = []

    def serve(address, known_hash, fname, path, processor, progressbar):
        asked.append((address, known_hash, processor, progressbar))
        path.mkdir(parents=True, exist_ok=True)
        (path / fname).write_text("3, 4\n")

    monkeypatch.setattr(pooch, "retrieve", serve)
    checksum = "md5:" + hashlib.md5(b"3, 4\n").hexdigest()
    file = replace(CENSUS.files[0], checksum=checksum)
    assert locate(file) == cache_folder() / "adult" / "adult.data"
    assert locate(file).read_text() == "3, 4\n"
    assert asked == [(file.address, checksum, None, True)]


def serve_archive(monkeypatch, content):
    """Let pooch itself unpack an archive that no network had to carry."""
    pooch = pytest.importorskip("pooch")

    def download(_address, output_file, _pooch):
        with open(output_file, "wb") as file:
            file.write(content)

    monkeypatch.setattr(pooch.core, "choose_downloader", lambda *_arguments, **_options: download)


def test_an_archive_is_unpacked_and_its_file_checked(data, tmp_path, monkeypatch):
    source = publish(tmp_path / "elsewhere", CREDIT, credit_text())
    archive = tmp_path / "packed.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr("SouthGermanCredit.asc", credit_text())
        packed.writestr("codetable.txt", "not asked for")
    serve_archive(monkeypatch, archive.read_bytes())
    assert credit(source).x_train.shape == (12, 20)
    assert [path.name for path in (cache_folder() / "south_german_credit").iterdir()] == ["SouthGermanCredit.asc"]


def test_a_damaged_archive_is_refused_and_not_kept(data, monkeypatch):
    serve_archive(monkeypatch, b"<html>moved</html>")
    with pytest.raises(AbsentiaError, match=r"Got BadZipFile \(File is not a zip file\) instead\."):
        credit()
    assert not list((cache_folder() / "south_german_credit").iterdir())


def test_without_pooch_a_sentence_says_what_to_install(data, monkeypatch):
    monkeypatch.delenv("ABSENTIA_CACHE")
    genuine = builtins.__import__

    def forget(name, *rest):
        if name == "pooch":
            raise ImportError(name)
        return genuine(name, *rest)

    monkeypatch.setattr(builtins, "__import__", forget)
    with pytest.raises(AbsentiaError, match=r"pooch must be installed .* Run pip install pooch"):
        cache_folder()


def test_the_cache_is_the_systems_unless_named(data, monkeypatch):
    pooch = pytest.importorskip("pooch")
    assert cache_folder() == data.parent / "cache"
    monkeypatch.delenv("ABSENTIA_CACHE")
    assert cache_folder() == pooch.os_cache("absentia")


@pytest.mark.parametrize("source", [CENSUS, CREDIT, FUNCTIONS], ids=lambda source: source.name)
def test_records_say_where_each_file_comes_from(source):
    assert source.licence
    assert source.citation
    for file in source.files:
        assert file.checksum.startswith("sha256:")
        assert (file.address or "").startswith("https://") != bool(file.by_hand)


real = pytest.mark.skipif(
    not os.environ.get("ABSENTIA_DATA"), reason="ABSENTIA_DATA names no folder with the real data"
)


@real
def test_the_real_census():
    table = census()
    assert table.x_train.shape == (CENSUS.files[0].shape[0], 12) == (32561, 12)
    assert table.x_test.shape == (CENSUS.files[1].shape[0], 12) == (16281, 12)
    assert (table.y_train.sum(), table.y_test.sum()) == (7841, 3846)
    assert torch.isfinite(table.x_train).all()
    torch.testing.assert_close(table.x_train.std(0, correction=0), torch.ones(12), atol=1e-4, rtol=0)
    countries = raw(table, table.x_train)[:, table.feature_names.index("native-country")].round().unique()
    assert len(countries) == 42  # 41 and the missing one


@real
def test_the_real_credit():
    table = credit()
    labels = torch.cat([table.y_train, table.y_test])
    assert (len(labels), table.x_train.shape[1] + 1) == CREDIT.files[0].shape
    assert (labels.sum(), (1 - labels).sum()) == (700, 300)
    assert (table.y_test.sum(), (1 - table.y_test).sum()) == (140, 60)


@real
def test_the_real_functions():
    assert len(functions_file().read_text().splitlines()) == FUNCTIONS.files[0].shape[0]
