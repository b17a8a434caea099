"""Writes the page of a paper's claims at a size from saved records, judged by today's claims.

python tools/claim_tables.py li2020 --runs FOLDER --size paper > docs/papers/li2020-paper-size.md
"""

import argparse
import pathlib

from wideflow.papers import papers
from wideflow.runs.records import Record, read_record
from wideflow.runs.runner import judged

HEAD = """# {authors} {year} at {size} size

Claim tables of runs at the size `{size}` (JAX {jax}), as today's claims judge their saved tables. A claim that fails stands first and is not hidden.
"""


def rows(claims) -> list[str]:
    worst_first = sorted(claims, key=lambda claim: claim.ok)
    lines = ["| claim | ours | asked | verdict |", "|---|---|---|---|"]
    for claim in worst_first:
        number = "" if claim.value != claim.value else f"{claim.value:.4g}"
        text = claim.text.replace("|", "\\|")
        lines.append(f"| {text} | {number} | {claim.bound} | {claim.verdict} |")
    return lines


def section(name: str, record: Record | None, experiment, size: str) -> list[str]:
    command = f"`wideflow run {name} --size {size}`"
    if record is None:
        return ["", f"## {name}", "", f"{command}: not finished."]
    claims = [judged(claim, experiment.asks(size)) for claim in experiment.claims(record.table)]
    told = f"{command}: {record.seconds:.0f} s on {record.device}; {record.status}."
    return [
        "",
        f"## {experiment.title}",
        "",
        told,
        "",
        *(rows(claims) if claims else ["No claims."]),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("paper")
    parser.add_argument("--runs", type=pathlib.Path, required=True)
    parser.add_argument("--size", default="paper")
    asked = parser.parse_args()
    paper, records = papers()[asked.paper], {}
    for path in sorted(asked.runs.glob(f"{asked.paper}-*-{asked.size}-*.nc")):
        record = read_record(path)
        records[record.experiment] = record
    versions = {record.versions["jax"] for record in records.values()}
    lines = [
        HEAD.format(
            authors=paper.authors,
            year=paper.year,
            size=asked.size,
            jax=", ".join(sorted(versions)),
        ).rstrip()
    ]
    for name in paper.experiments:
        lines += section(name, records.get(name), paper.experiment(name), asked.size)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
