"""The guides run: every Python block of a page, in order, in one namespace; the page ends in the figure it draws."""

import pathlib
import re

import pytest

from wideflow.certify import registry

GUIDES = pathlib.Path(__file__).parents[1] / "docs" / "guides"
NAMES = ("is-my-network-lazy", "how-wide-which-scaling", "what-does-theory-guarantee")


@pytest.mark.parametrize("name", NAMES)
def test_guide_runs_and_ends_in_its_figure(name, tmp_path, monkeypatch, capsys):
    text = (GUIDES / f"{name}.md").read_text()
    monkeypatch.setattr(registry, "_REGISTERED", list(registry._REGISTERED))
    scope = {"FOLDER": tmp_path}
    for block in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL):
        exec(compile(block, f"{name}.md", "exec"), scope)
    assert (tmp_path / f"{name}.png").stat().st_size > 5000
    last = text.strip().splitlines()[-1]
    assert re.fullmatch(r"!\[.+\]\(figures/" + name + r"\.png\)", last)
    assert (GUIDES / "figures" / f"{name}.png").is_file()
    assert capsys.readouterr().out
