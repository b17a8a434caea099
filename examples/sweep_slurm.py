"""A sweep on a SLURM cluster: workers are SLURM jobs that dask-jobqueue submits.

    pip install 'wideflow[slurm]'
    python examples/sweep_slurm.py drift.yaml --out /shared/runs --queue cpu --jobs 10

The folder must be on a file system that all nodes share. After an interruption the same command
continues.
"""

import argparse

from dask_jobqueue import SLURMCluster

import wideflow as wf
from wideflow.runs.sweeps.cluster import thread_environment
from wideflow.runs.sweeps.security import security_of, write_certificates


def cluster_of(options: argparse.Namespace) -> SLURMCluster:
    """One SLURM job has `processes` workers of one thread each, with the same settings of XLA and
    BLAS as on one machine.
    """
    threads = [f"export {name}='{value}'" for name, value in thread_environment(1).items()]
    return SLURMCluster(
        queue=options.queue,
        cores=options.processes,
        processes=options.processes,
        memory=options.memory,
        walltime=options.walltime,
        job_script_prologue=[*threads, *options.prologue],
        job_extra_directives=options.directive,
        interface=options.interface,
        protocol="tls://",
        security=security_of(options.certificates),
    )


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("spec")
    parser.add_argument("--out", default="runs/sweeps")
    parser.add_argument("--queue", default="cpu", help="the SLURM partition")
    parser.add_argument("--jobs", type=int, default=10, help="how many jobs")
    parser.add_argument("--processes", type=int, default=16, help="workers in a job, one core each")
    parser.add_argument("--memory", default="64GB", help="of a job")
    parser.add_argument("--walltime", default="04:00:00")
    parser.add_argument("--interface", help="the network that nodes share, such as ib0")
    parser.add_argument(
        "--prologue",
        action="append",
        default=[],
        help="a shell line before the workers start, such as 'source /shared/venv/bin/activate'",
    )
    parser.add_argument(
        "--directive",
        action="append",
        default=[],
        help="an #SBATCH line more; '--gres=gpu:1' with --processes 1 gives every worker its own "
        "GPU",
    )
    parser.add_argument(
        "--certificates", help="a folder on the shared file system; default below --out"
    )
    options = parser.parse_args(words)
    options.certificates = options.certificates or f"{options.out}/certificates"
    return options


if __name__ == "__main__":
    options = arguments()
    write_certificates(
        options.certificates
    )  # nobody else on the cluster can send code to the workers
    with cluster_of(options) as cluster:
        cluster.scale(jobs=options.jobs)
        swept = wf.sweep(
            options.spec,
            options.out,
            scheduler=cluster.scheduler_address,
            security=options.certificates,
        )
    print(f"{swept.computed} computed, {len(swept.found)} found, {len(swept.missing)} missing")
    for what, which, why in swept.troubles:
        print(what, which, why)
    if swept.stopped:
        print(f"the engine stopped: {swept.stopped} The same command continues from here.")
