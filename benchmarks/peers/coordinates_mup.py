"""The coordinate check of microsoft/mup (1.0.0) on the modules of tests/torch/test_coordinates.py:
the slopes that the test keeps.

Run in an environment with `mup` and its dependencies: PYTHONPATH=tests/torch python
benchmarks/peers/coordinates_mup.py
"""

import numpy as np
import torch
from coordinate_modules import CASES, WIDTHS, batch
from mup.coord_check import _get_coord_data


def slopes(case) -> dict[str, list[float]]:
    """Of log(mean of |h|) on log(width), by module, before every step."""
    inputs, classes = batch()
    models = {width: (lambda width=width: case.build(width)) for width in WIDTHS}
    table = _get_coord_data(
        models,
        [(inputs, classes)],
        case.optimiser,
        nsteps=4,
        lossfn="xent",
        cuda=False,
        show_progress=False,
    )
    table = table[table.module != ""]
    answer: dict[str, list[float]] = {}
    for (module, _), rows in table.groupby(["module", "t"]):
        rows = rows.sort_values("width")
        answer.setdefault(module, []).append(np.polyfit(np.log(rows.width), np.log(rows.l1), 1)[0])
    return answer


if __name__ == "__main__":
    torch.set_num_threads(1)
    for name, case in CASES.items():
        for module, values in slopes(case).items():
            print(f'    ("{name}", "{module}"): {[round(float(v), 6) for v in values]},')
