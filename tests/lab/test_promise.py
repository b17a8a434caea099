"""What the page promises on its first settings: NTK is lazy, mean field is rich, both learn; labels
and dial agree.
"""

import dataclasses
import re

import jax
import numpy as np
import pytest

from wideflow.experiments import registry
from wideflow.lab import page
from wideflow.lab.dialling import dial
from wideflow.lab.links import place
from wideflow.lab.tab import LAZY_SIDE, RICH_SIDE
from wideflow.lab.uploads import Uploads
from wideflow.training.session import Session

NETWORKS = 3
FITTED = 0.05  # of the loss at the start


@pytest.fixture(
    scope="module", params=[(LAZY_SIDE, "lazy"), (RICH_SIDE, "rich")], ids=lambda p: p[0]
)
def ended(request):
    """A table of the page's first settings under one scaling, three networks together, and the
    label of that scaling.
    """
    uploads = Uploads()
    scaling, label = request.param
    here = place({"scaling": scaling}, uploads)
    settings = dataclasses.replace(
        here.scene.settings(here.changes),
        record=("kernel_change", "linearisation_gap"),
        records=4,
        seeds=NETWORKS,
    )
    uploads.end()
    table = registry.experiment("train").run(settings, jax.random.key(17), Session())
    return scaling, label, table


def test_the_dial_says_what_the_label_says(ended):
    scaling, label, table = ended
    offered = (page.HERE / "templates" / "lab.html").read_text()
    assert re.search(rf'value="{scaling}">[^<]*\({label}\)<', offered)
    for network in range(NETWORKS):
        assert dial(table.isel(network=network))["verdict"] == label


def test_the_network_learns(ended):
    table = ended[2]
    assert np.all(table.loss.isel(step=-1) <= FITTED * table.loss.isel(step=0))


def test_richness_is_the_one_number_and_grows_from_lazy_to_rich(ended):
    # by its definition, from the two recorded numbers; the verdict's borders are on the same scale
    one = ended[2].isel(network=0)
    told = dial(one)
    assert told["richness"] == max(float(one.kernel_change[-1]), float(one.linearisation_gap[-1]))
    assert (told["richness"] < told["lazy"]) == (told["verdict"] == "lazy")
    assert (told["richness"] > told["rich"]) == (told["verdict"] == "rich")
    assert dial(one.isel(step=slice(0, 1)))["verdict"] == "at the start"
