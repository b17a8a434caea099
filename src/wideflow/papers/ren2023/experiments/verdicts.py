"""Verdicts of the paper's lemmas on what an experiment trained, stored in its table and checked as
claims.
"""

from collections.abc import Mapping, Sequence

import xarray as xr

from ....experiments.base import Claim
from ....theorems.base import Verdict


def with_verdicts(table: xr.Dataset, verdicts: Sequence[Mapping[str, Verdict]]) -> xr.Dataset:
    """The table with, for each lemma, the worst verdict over the seeds: one that does not hold,
    else the smallest margin.
    """
    names = list(verdicts[0])
    worst = [min((v[name] for v in verdicts), key=lambda v: (v.holds, v.margin)) for name in names]
    columns = {
        "lemma_holds": ("lemma", [int(v.holds) for v in worst]),
        "lemma_message": ("lemma", [str(v) for v in worst]),
    }
    return table.assign(columns).assign_coords(lemma=names)


def verdict_claims(table: xr.Dataset) -> list[Claim]:
    """One claim a lemma; a lemma that is violated or does not apply fails, and its note says
    why.
    """
    rows = zip(
        table.lemma.values, table.lemma_holds.values, table.lemma_message.values, strict=True
    )
    return [Claim(str(name), holds=bool(holds), note=str(message)) for name, holds, message in rows]
