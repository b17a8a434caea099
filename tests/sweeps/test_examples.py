"""What the examples for SLURM and Kubernetes ask of a cluster, without one; skipped where the
optional parts are missing.
"""

import importlib.util
import pathlib
import sys

import pytest
import yaml

from wideflow.runs.sweeps import cluster
from wideflow.runs.sweeps.security import write_certificates

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"


def example(name: str):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_slurm_job_has_workers_of_one_thread_that_know_the_certificate(tmp_path):
    pytest.importorskip("dask_jobqueue")
    slurm = example("sweep_slurm")
    words = [
        "s.yaml",
        "--queue",
        "long",
        "--processes",
        "4",
        "--memory",
        "8GB",
        "--walltime",
        "01:00:00",
    ]
    words += ["--directive=--gres=gpu:1", "--prologue", "source /shared/venv/bin/activate"]
    words += ["--certificates", str(write_certificates(tmp_path))]
    with slurm.cluster_of(slurm.arguments(words)) as made:
        lines = made.job_script().splitlines()
    for line in (
        "#SBATCH -p long",
        "#SBATCH --cpus-per-task=4",
        "#SBATCH -t 01:00:00",
        "#SBATCH --gres=gpu:1",
    ):
        assert line in lines
    for name, value in cluster.thread_environment(1).items():
        assert f"export {name}='{value}'" in lines
    (start,) = [line for line in lines if "dask_worker" in line]
    assert start.startswith(sys.executable)
    assert "--nthreads 1" in start
    assert "--nworkers 4" in start
    assert f"--tls-cert {tmp_path / 'certificate.pem'}" in start
    assert lines.index("source /shared/venv/bin/activate") < lines.index(start)


def _schema(uri: str, templates: dict):
    """The operator's templates; of Kubernetes' own parts (a pod, a service), which it does not
    bring along, anything fits.
    """
    from referencing.jsonschema import DRAFT202012

    pods = {
        "definitions": {f"io.k8s.api.core.v1.{kind}": {} for kind in ("PodSpec", "ServiceSpec")}
    }
    return DRAFT202012.create_resource(templates if "templates.yaml" in uri else pods)


def test_the_kubernetes_cluster_fits_the_operators_own_schema():
    operator = pytest.importorskip("dask_kubernetes.operator")
    jsonschema, referencing = map(pytest.importorskip, ("jsonschema", "referencing"))
    kubernetes = example("sweep_kubernetes")
    asked = kubernetes.arguments(["s.yaml", "--image", "wideflow:1", "--workers", "7", "--gpu"])
    spec = kubernetes.spec_of(asked)
    folder = pathlib.Path(operator.__file__).parent / "customresources"
    templates = yaml.safe_load((folder / "templates.yaml").read_text())
    schema = templates["definitions"]["dask.k8s.api.v1.DaskCluster"]
    registry = referencing.Registry(retrieve=lambda uri: _schema(uri, templates))
    jsonschema.Draft202012Validator(schema, registry=registry).validate(spec)
    worker = spec["spec"]["worker"]
    container = worker["spec"]["containers"][0]
    assert worker["replicas"] == 7
    assert container["args"][-2:] == ["--nthreads", "1"]
    assert container["resources"]["limits"]["nvidia.com/gpu"] == "1"
    assert {
        entry["name"]: entry["value"] for entry in container["env"]
    } == cluster.thread_environment(1)
    mounts = {mount["name"] for mount in container["volumeMounts"]}
    assert mounts == {volume["name"] for volume in worker["spec"]["volumes"]} == {"runs"}
