"""Datasets and CSV files: what comes in comes out, and every defect is named."""

import gzip

import numpy as np
import pytest
from numpy.testing import assert_allclose

import wideflow as wf
from wideflow.data.files import UCI, DataNotFoundError, locate

X = np.array([[1.0, 2.0], [3.0, 5.0], [5.0, 8.0]])
Y = np.array([1.0, 0.0, 2.0])


def test_arrays_come_back_unchanged():
    data = wf.Dataset(X, Y, "mine", ("a", "b"))
    assert len(data) == 3
    assert data.dimension == 2
    assert np.array_equal(data.inputs, X)
    assert np.array_equal(data.take([2, 0]).targets, [2.0, 1.0])


def test_standardised_by_the_training_part():
    train = wf.Dataset(X[:2], Y[:2])
    z = wf.Dataset(X, Y).standardised(train)
    assert_allclose(z.inputs[:, 0], [-1, 1, 3])  # mean 2, deviation 1
    assert_allclose(z.targets, [1, -1, 3])  # mean 1/2, deviation 1/2


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: wf.Dataset(X[:, 0], Y), "must have shape \\(sample, feature\\)"),
        (lambda: wf.Dataset(X, Y[:2]), "one row per sample, got 3 and 2"),
        (lambda: wf.Dataset([[np.nan, 1.0]], [0.0]), "must be finite, got nan at index \\(0, 0\\)"),
        (lambda: wf.Dataset([["a", "b"]], [0.0]), "must hold real numbers"),
        (lambda: wf.Dataset(np.zeros((0, 2)), np.zeros(0)), "must not be empty"),
        (lambda: wf.Dataset(X, Y, features=("a",)), "must name every column"),
        (lambda: wf.Dataset(np.ones((3, 1)), Y).standardised(), "constant columns"),
        (lambda: wf.data.one_hot(np.array([0, 3]), 2), "must lie in 0..1"),
    ],
)
def test_defects_are_named(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def write(folder, text, name="table.csv"):
    path = folder / name
    path.write_text(text)
    return path


def test_csv_target_by_name_position_and_default(tmp_path):
    path = write(tmp_path, "a, b ,y\n1,2,3\n4,6,9\n")
    for target in ("y", 2, -1, "2", None):
        data = wf.data.read_csv(path, target)
        assert data.features == ("a", "b")
        assert np.array_equal(data.targets, [3, 9])
    assert wf.data.read_csv(path, "a").features == ("b", "y")


def test_compressed_csv(tmp_path):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"a,y\n1,2\n3,4\n"))
    assert np.array_equal(wf.data.read_csv(path).targets, [2, 4])


@pytest.mark.parametrize(
    ("text", "target", "message"),
    [
        ("a,y\n1,2\n", "z", "is not a column of table.csv.*Columns: a, y"),
        ("alpha,y\n1,2\n", "alpa", "Did you mean 'alpha'"),
        ("a,y\n1,2\nred,3\n", "y", "text where numbers are needed, in column 'a'.*'red' in line 3"),
        ("a,y\n1,2\n,3\n", "y", "1 missing value, in column 'a'; the first is in line 3"),
        ("a,b,y\n1,7,2\n3,7,4\n", "y", "never vary: 'b'"),
        ("a,y\n", "y", "header but no rows"),
        ("1,2\n3,4\n", None, "no header"),
        ("", None, "cannot be read as CSV"),
        ("y\n1\n2\n", "y", "no column left for the inputs"),
        ("a,y\n1,2\n", 7, "out of range"),
    ],
)
def test_csv_defects(tmp_path, text, target, message):
    path = write(tmp_path, text)
    with pytest.raises(ValueError, match=message):
        wf.data.read_csv(path, target)


def test_constant_columns_can_be_dropped_or_kept(tmp_path):
    path = write(tmp_path, "a,b,y\n1,7,2\n3,7,4\n")
    assert wf.data.read_csv(path, constant="drop").features == ("a",)
    assert wf.data.read_csv(path, constant="keep").features == ("a", "b")


def test_missing_file_suggests_a_near_one(tmp_path):
    write(tmp_path, "a,y\n1,2\n")
    with pytest.raises(ValueError, match=r"Did you mean 'table\.csv'"):
        wf.data.read_csv(tmp_path / "tables.csv")


def test_what_was_tried_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("WIDEFLOW_DATA", str(tmp_path))
    monkeypatch.setenv("WIDEFLOW_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("WIDEFLOW_DATA_URL", raising=False)
    with pytest.raises(
        DataNotFoundError,
        match=r"WIDEFLOW_DATA\): not found.*cache\): not found.*WIDEFLOW_DATA_URL",
    ):
        wf.data.uci("concrete")


def test_a_damaged_file_is_recognised(tmp_path, monkeypatch):
    monkeypatch.setenv("WIDEFLOW_DATA", str(tmp_path))
    (tmp_path / "concrete.csv").write_text("a,y\n1,2\n")
    with pytest.raises(ValueError, match="damaged or a different file"):
        locate(UCI["concrete"].source)


# data/README of the files: rows, features, mean and sample deviation of the target
FACTS = {
    "concrete": (1030, 8, 35.8178, 16.7057),
    "energy": (768, 8, 22.3072, 10.0902),
    "airfoil": (1503, 5, 124.8359, 6.8987),
    "plant": (9568, 4, 454.3650, 17.0670),
}


@pytest.mark.data
@pytest.mark.parametrize("name", FACTS)
def test_uci_sets(data_folder, name):
    rows, columns, mean, deviation = FACTS[name]
    data = wf.data.uci(name)
    assert data.inputs.shape == (rows, columns)
    assert_allclose([data.targets.mean(), data.targets.std(ddof=1)], [mean, deviation], atol=6e-5)
    parts = wf.data.split(data, (0.4, 0.4, 0.2))
    assert sum(len(p) for p in parts) == rows
    assert len(parts[0]) == int(0.4 * rows)


@pytest.mark.data
def test_mnist(data_folder):
    test = wf.data.mnist("test", 0, 10)
    assert list(test.targets.argmax(axis=1)[:5]) == [7, 2, 1, 0, 4]
    train = wf.data.mnist("train", 100, 50)
    assert train.inputs.shape == (50, 784)
    assert 0 <= train.inputs.min() < train.inputs.max() <= 1
    with pytest.raises(ValueError, match="10000 images"):
        wf.data.mnist("test", 9999, 5)


@pytest.mark.parametrize(
    ("labels", "codes"),
    [
        (("yes", "no", "no"), (1, -1, -1)),
        (("b", "a", "b"), (1, -1, 1)),
        (("1", "0", "1"), (1, 0, 1)),
    ],
)
def test_a_target_of_two_names_becomes_two_classes(tmp_path, labels, codes):
    path = tmp_path / "t.csv"
    path.write_text("x,y\n" + "\n".join(f"{i},{label}" for i, label in enumerate(labels)))
    assert wf.data.read_csv(path, classes=True).targets.tolist() == list(codes)


def test_one_class_of_several_is_told_from_the_rest(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,y\n1,oak\n2,ash\n3,elm\n4,oak\n")
    assert wf.data.read_csv(path, classes="oak").targets.tolist() == [1, -1, -1, 1]
    with pytest.raises(ValueError, match=r"`classes` 'oat' is no name in column 'y'.*'oak'"):
        wf.data.read_csv(path, classes="oat")
    with pytest.raises(
        ValueError, match=r"3 classes in column 'y': 'ash', 'elm', 'oak'\. Name the class"
    ):
        wf.data.read_csv(path, classes=True)
    path.write_text("x,y\n1,2\n2,3\n")
    with pytest.raises(ValueError, match="holds no names of classes"):
        wf.data.read_csv(path, classes="oak")


@pytest.mark.parametrize("labels", [("yes", "3", "yes"), ("yes", "yes", "yes"), ("yes", "", "no")])
def test_other_text_is_refused_with_classes_too(tmp_path, labels):
    path = tmp_path / "t.csv"
    path.write_text("x,y\n" + "\n".join(f"{i},{label}" for i, label in enumerate(labels)))
    with pytest.raises(ValueError, match=r"text where numbers|missing value"):
        wf.data.read_csv(path, classes=True)


def test_rows_that_repeat_an_earlier_one_are_counted():
    assert (
        wf.Dataset([[1.0, 2.0], [1.0, 2.0], [1.0, 3.0], [1.0, 2.0]], np.arange(4)).duplicates() == 2
    )
