"""Writes the page of a paper's claims at a size from saved records, judged by today's claims.

python tools/claim_tables.py li2020 --runs FOLDER --size paper > docs/papers/li2020-paper-size.md
"""

import argparse
import pathlib
import tomllib

from wideflow.papers import papers
from wideflow.runs.records import Record, read_record
from wideflow.runs.runner import judged

NOTES = tomllib.loads(pathlib.Path(__file__).with_name("claim_notes.toml").read_text())
HEAD = """# {name}, full-size runs

Every experiment of {paper} at the size `{size}`, as published where the paper gives a size (JAX {jax}). A claim that fails stands first and is
not hidden; where the reason is known, it stands above the table. The tables are saved records, judged by today's claims.
"""


def rows(claims) -> list[str]:
    worst_first = sorted(claims, key=lambda claim: claim.ok)
    lines = ["| claim | ours | expected | verdict |", "|---|---|---|---|"]
    for claim in worst_first:
        number = "" if claim.value != claim.value else f"{claim.value:.4g}"
        text = claim.text.replace("|", "\\|")
        verdict = claim.verdict if claim.ok else f"**{claim.verdict}**"
        lines.append(f"| {text} | {number} | {claim.bound} | {verdict} |")
    return lines


def section(name: str, record: Record | None, experiment, size: str) -> list[str]:
    """An experiment's heading, its command, the note on what fails, and the table."""
    command = f"`wideflow run {name} --size {size}`"
    note = ["", f"*{NOTES[name]}*"] if name in NOTES else []
    head = ["", f"## {experiment.title}", ""]
    if record is None:
        return [*head, f"{command}: not finished.", *note]
    claims = [
        judged(claim, experiment.is_large_enough(size)) for claim in experiment.claims(record.table)
    ]
    done = f"{command}: {record.seconds:.0f} s on {_device(record.device)}; {record.status}."
    return [*head, done, *note, "", *(rows(claims) if claims else ["No claims."])]


def _device(device: str) -> str:
    """'NVIDIA H200' for 'gpu:0 (NVIDIA H200)', 'a CPU' for 'cpu:0 (cpu)'."""
    return "a CPU" if device.startswith("cpu") else device.partition("(")[2].rstrip(")")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("paper")
    parser.add_argument("--runs", type=pathlib.Path, required=True)
    parser.add_argument("--size", default="paper")
    options = parser.parse_args()
    paper, records = papers()[options.paper], {}
    for path in sorted(options.runs.glob(f"{options.paper}-*-{options.size}-*.nc")):
        record = read_record(path)
        records[record.experiment] = record
    versions = {record.versions["jax"] for record in records.values()}
    lines = [
        HEAD.format(
            name=paper.title.split(":")[0],
            paper=f"[{paper.name}]({paper.key}.md)",
            size=options.size,
            jax=", ".join(sorted(versions)),
        ).rstrip()
    ]
    for name in paper.experiments:
        lines += section(name, records.get(name), paper.experiment(name), options.size)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
