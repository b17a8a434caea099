import jax
import numpy as np
import pytest

from wideflow.data import cifar10_features, mixture_features
from wideflow.data.files import DataNotFoundError


def write(path, extractor="mobilenetv2-pca512"):
    rng = np.random.default_rng(0)
    np.savez(
        path,
        train_inputs=rng.normal(size=(20, 8)).astype(np.float32),
        train_labels=np.arange(20) % 10,
        test_inputs=rng.normal(size=(5, 8)).astype(np.float32),
        test_labels=np.arange(5),
        extractor=np.array(extractor),
    )


def test_cached_features_are_read_from_the_data_folder(tmp_path, monkeypatch):
    write(tmp_path / "cifar10-mobilenetv2-pca512.npz")
    monkeypatch.setenv("WIDEFLOW_DATA", str(tmp_path))
    train, test = cifar10_features(samples=12)
    assert train.inputs.shape == (12, 8)
    assert train.targets.shape == (12, 10)
    assert test.inputs.shape == (5, 8)
    assert np.argmax(np.asarray(train.targets), axis=1).tolist() == [*range(10), 0, 1]
    assert "mobilenetv2-pca512" in train.name


def test_missing_features_say_how_to_make_them(tmp_path, monkeypatch):
    monkeypatch.setenv("WIDEFLOW_DATA", str(tmp_path))
    monkeypatch.setenv("WIDEFLOW_CACHE", str(tmp_path / "cache"))
    with pytest.raises(DataNotFoundError, match=r"tools/cifar10_features\.py"):
        cifar10_features("resnet18")


def test_damaged_and_wrong_files(tmp_path, monkeypatch):
    monkeypatch.setenv("WIDEFLOW_DATA", str(tmp_path))
    (tmp_path / "cifar10-resnet18.npz").write_bytes(b"no archive")
    with pytest.raises(ValueError, match="damaged"):
        cifar10_features("resnet18")
    write(tmp_path / "cifar10-resnet18.npz")
    with pytest.raises(ValueError, match="not of 'resnet18'"):
        cifar10_features("resnet18")
    write(tmp_path / "cifar10-mobilenetv2-pca512.npz")
    with pytest.raises(ValueError, match="`samples` must lie in"):
        cifar10_features(samples=21)


def test_mixture_has_its_means():
    # Class means of 4000 training rows against those of 4000 test rows: the same law, four standard
    # errors.
    train, test = mixture_features(jax.random.key(0), 4000, 4000, features=6, classes=3)
    for label in range(3):
        first, second = (
            np.asarray(d.inputs)[np.asarray(d.targets)[:, label] == 1] for d in (train, test)
        )
        error = np.sqrt(1 / len(first) + 1 / len(second))
        assert np.all(np.abs(first.mean(0) - second.mean(0)) < 4.5 * error)
    with pytest.raises(ValueError, match="`samples`"):
        mixture_features(jax.random.key(0), 0)
