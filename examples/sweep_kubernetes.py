"""A sweep on Kubernetes: workers are pods of the Dask operator, one thread each.

    pip install 'wideflow[kubernetes]'
    python examples/sweep_kubernetes.py drift.yaml --image registry.example/wideflow:1 \\
        --workers 32 --claim runs

The Dask operator must be installed in the cluster. The claim is a volume that all pods can write
to; the script itself runs in a pod that also mounts it at /runs. After an interruption the same
command continues.
"""

import argparse

from dask_kubernetes.operator import KubeCluster, make_cluster_spec

import wideflow as wf
from wideflow.runs.sweeps.cluster import thread_environment


def spec_of(options: argparse.Namespace) -> dict:
    """The cluster as the operator takes it; workers have the same settings of XLA and BLAS as on
    one machine.
    """
    spec = make_cluster_spec(name="wideflow", image=options.image, n_workers=options.workers)
    pods = [spec["spec"][part]["spec"] for part in ("worker", "scheduler")]
    for pod in pods:
        container = pod["containers"][0]
        pod["volumes"] = [{"name": "runs", "persistentVolumeClaim": {"claimName": options.claim}}]
        container["volumeMounts"] = [{"name": "runs", "mountPath": "/runs"}]
        container["env"] = [
            {"name": name, "value": value} for name, value in thread_environment(1).items()
        ]
        container["resources"] = {"limits": {"cpu": "1", "memory": options.memory}}
    worker = pods[0]["containers"][0]
    worker["args"] += ["--nthreads", "1"]
    if options.gpu:
        worker["resources"]["limits"]["nvidia.com/gpu"] = "1"  # every worker sees its own alone
    return spec


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("spec")
    parser.add_argument("--out", default="/runs/sweeps", help="a folder below /runs")
    parser.add_argument("--image", required=True, help="has wideflow and dask-kubernetes")
    parser.add_argument("--workers", type=int, default=32)
    parser.add_argument("--claim", default="runs", help="the volume claim that all pods mount")
    parser.add_argument("--memory", default="4Gi", help="of a pod")
    parser.add_argument("--gpu", action="store_true", help="one GPU a worker")
    return parser.parse_args(words)


if __name__ == "__main__":
    options = arguments()
    with KubeCluster(custom_cluster_spec=spec_of(options)) as cluster:
        swept = wf.sweep(options.spec, options.out, scheduler=cluster.scheduler_address)
    print(f"{swept.computed} computed, {len(swept.found)} found, {len(swept.missing)} missing")
    for what, which, why in swept.troubles:
        print(what, which, why)
