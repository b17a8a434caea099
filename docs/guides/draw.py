"""Runs guides and puts their figures into `figures/`. Run:  python docs/guides/draw.py [NAME ...]"""

import pathlib
import re
import sys

HERE = pathlib.Path(__file__).parent
NAMES = ("is-my-network-lazy", "how-wide-which-scaling", "what-does-theory-guarantee")

if __name__ == "__main__":
    for page in (HERE / f"{name}.md" for name in sys.argv[1:] or NAMES):
        scope = {"FOLDER": HERE / "figures"}
        for block in re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL):
            exec(compile(block, page.name, "exec"), scope)
