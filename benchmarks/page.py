"""The page of results: every number on it is computed from the JSON, goals and misses included."""

import json
import math
import pathlib


def seconds_of(rows, program, **where):
    for row in rows:
        if (
            row["program"] == program
            and "seconds" in row
            and all(row.get(k) == v for k, v in where.items())
        ):
            return row["seconds"]
    return math.nan


def table_of(header, rows) -> str:
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows])


def number(x, digits=3) -> str:
    return (
        "not measured"
        if x is None or (isinstance(x, float) and math.isnan(x))
        else f"{x:.{digits}g}"
    )


class Goals:
    """Ratios with their goals."""

    def __init__(self):
        self.rows = []

    def add(self, what: str, ratio: float, goal: float, at_least: bool = True):
        if math.isnan(ratio):
            verdict = "not measured"
        else:
            met = ratio >= goal if at_least else ratio <= goal
            verdict = (
                "met"
                if met
                else f"missed by a factor {number(goal / ratio if at_least else ratio / goal)}"
            )
        self.rows.append(
            [what, number(ratio), ("at least " if at_least else "at most ") + str(goal), verdict]
        )


def descent_part(rows, goals):
    sizes = sorted(
        {(r["samples"], r["features"], r["width"], r["dtype"]) for r in rows if "samples" in r},
        key=str,
    )
    programs = list(dict.fromkeys(r["program"] for r in rows if "samples" in r))
    body = []
    for size in sizes:
        where = dict(zip(("samples", "features", "width", "dtype"), size))
        body.append(
            [
                f"n={size[0]}, d={size[1]}, m={size[2]}, {size[3]}",
                *(number(1e6 * seconds_of(rows, p, **where)) for p in programs),
            ]
        )
        mine = seconds_of(rows, "wideflow", **where)
        compiled = [seconds_of(rows, p, **where) for p in programs if p.startswith("torch.compile")]
        compiled = min((c for c in compiled if not math.isnan(c)), default=math.nan)
        name = f"descent n={size[0]}, d={size[1]}, m={size[2]}, {size[3]}"
        if size[:3] == (100, 50, 2000):
            goals.add(
                f"{name}: PyTorch eager / wideflow",
                seconds_of(rows, "torch eager", **where) / mine,
                3,
            )
            goals.add(f"{name}: best torch.compile / wideflow", compiled / mine, 1.25)
            goals.add(
                f"{name}: wideflow / bare products",
                mine / seconds_of(rows, "bare products", **where),
                1.4,
                False,
            )
            goals.add(
                f"{name}: recording every 100 steps / none",
                seconds_of(rows, "wideflow, recording every 100", **where) / mine,
                1.1,
                False,
            )
        if size[:3] == (20, 5, 200):
            goals.add(
                f"{name}: PyTorch eager / wideflow",
                seconds_of(rows, "torch eager", **where) / mine,
                30,
            )
    return "Microseconds per step.\n\n" + table_of(["size", *programs], body)


def gram_part(rows, goals):
    good = [r for r in rows if "seconds" in r]
    body = [
        [
            r["program"],
            r["samples"],
            number(1e3 * r["seconds"]),
            number(r["memory"] / 1e6),
            f"{r['error']:.1e}",
        ]
        for r in good
    ]

    def memory(program, n):
        return next(
            (r["memory"] for r in good if r["program"] == program and r["samples"] == n), math.nan
        )

    mine = seconds_of(rows, "wideflow", samples=500)
    goals.add(
        "tangent Gram, n=500, m=2000: neural-tangents 3 / wideflow",
        seconds_of(rows, "neural-tangents 3", samples=500) / mine,
        1.3,
    )
    goals.add(
        "tangent Gram, n=500, m=2000: torch.func / wideflow",
        seconds_of(rows, "torch.func", samples=500) / mine,
        50,
    )
    goals.add(
        "tangent Gram, n=500, m=2000: memory of wideflow / torch.func",
        memory("wideflow", 500) / memory("torch.func", 500),
        0.1,
        False,
    )
    return table_of(
        ["program", "n", "ms", "peak memory above the initial level, MB", "largest relative error"],
        body,
    )


def kernels_part(rows, goals):
    sizes = sorted({r["samples"] for r in rows if "samples" in r})
    body = [
        [
            n,
            *(
                number(1e3 * seconds_of(rows, p, samples=n))
                for p in ("wideflow", "neural-tangents")
            ),
        ]
        for n in sizes
    ]
    for n in sizes:
        ratio = seconds_of(rows, "neural-tangents", samples=n) / seconds_of(
            rows, "wideflow", samples=n
        )
        goals.add(f"limit kernels, n={n}: neural-tangents / wideflow", ratio, 1.0)
    return table_of(["n", "wideflow, ms", "neural-tangents, ms"], body)


def deep_kernels_part(rows, goals):
    names = {"conv": "two convolutions and pooling, 200 images of 8 x 8 x 3"}
    cases = list(dict.fromkeys(r["case"] for r in rows if "case" in r))
    programs = ("wideflow", "neural-tangents")
    body = []
    for case in cases:
        name = names.get(case, f"depth 5, n={case}")
        mine, theirs = (seconds_of(rows, p, case=case) for p in programs)
        body.append([name, number(1e3 * mine), number(1e3 * theirs), number(theirs / mine)])
        goals.add(f"deep kernels, {name}: neural-tangents / wideflow", theirs / mine, 1.5)
    return table_of(["kernel", "wideflow, ms", "neural-tangents, ms", "ratio"], body)


def kernel_regression_part(rows, goals):
    body = []
    for row in (r for r in rows if "samples" in r):
        peak = row["peak_gib"] * 2**30
        if row["samples"] == 20_000:
            goals.add("kernel regression, n=20000: peak memory / 4e9 bytes", peak / 4e9, 1.0, False)
        body.append(
            [
                row["samples"],
                row["method"],
                number(row["seconds_solve"]),
                number(row["seconds_predict"]),
                number(peak / 1e9),
                f"{row['test_error']:.2%}",
            ]
        )
    return (
        "MNIST, tangent kernel of depth 3, float64, with a memory budget of 2 GiB for the blocks "
        "of the factor; the peak is that of the whole process, "
        "including Python, JAX and the images. A block takes a 64th of the budget, 32 MiB: from "
        "that size on glibc returns freed blocks to the system, whereas blocks of 8 MiB left holes "
        "in its heap and the same solve took 4.2 GB.\n\n"
        + table_of(
            [
                "n",
                "solver",
                "seconds to solve",
                "seconds for 10,000 predictions",
                "peak memory, GB (1e9 bytes)",
                "test error",
            ],
            body,
        )
    )


RIVALS = {
    "the best explicit solver": ("SciPy RK45", "Diffrax tsit5"),
    "descent at its largest rate": ("descent",),
}


def other_solver(row, explicit):
    """Evaluations, seconds, note. Only the cost of explicit solvers, whose steps stability limits,
    may be extrapolated.
    """
    if row["share"] >= 1:
        return number(row["evaluations"], 4), number(row["seconds"]), ""
    if row["program"] in explicit:
        return (
            number(row["evaluations"], 4),
            number(row["seconds"]),
            f"extrapolated from {row['share']:.1e} of the time",
        )
    spent = number(row["seconds"] * row["share"])
    return "", "", f"stopped after {spent} s at {row['share']:.1e} of the time"


def flow_part(rows, goals):
    body, explicit = [], [program for programs in RIVALS.values() for program in programs]
    for case in dict.fromkeys(r["case"] for r in rows if "case" in r):
        mine = next(
            (r for r in rows if r.get("case") == case and r["program"] == "wideflow gram"), None
        )
        if mine is None:
            continue
        others = [
            r
            for r in rows
            if r.get("case") == case and r["program"] not in ("wideflow gram", "reference")
        ]
        body.append(
            [
                case,
                "wideflow gram",
                f"{mine['evaluations']} ({mine['steps']} steps)",
                number(mine["seconds"]),
                f"error {mine['error']:.1e}",
            ]
        )
        body += [["", r["program"], *other_solver(r, explicit)] for r in others]
        goal = 50 if "relu" in case else 100
        for label, programs in RIVALS.items():
            rivals = [r for r in others if r["program"] in programs]
            few, fast = (
                min((r[k] for r in rivals), default=math.nan) for k in ("evaluations", "seconds")
            )
            goals.add(
                f"flow, {case}: evaluations of {label} / wideflow", few / mine["evaluations"], goal
            )
            goals.add(f"flow, {case}: time of {label} / wideflow", fast / mine["seconds"], 20)
    easy = [r for r in rows if r.get("program") == "auto against tsit5"]
    parts = [table_of(["case", "program", "network evaluations", "seconds", "note"], body)]
    if easy:
        parts.append(
            table_of(
                [
                    "easy case",
                    "auto: evaluations",
                    "seconds",
                    "tsit5: evaluations",
                    "seconds",
                    "tsit5 / auto",
                ],
                [
                    [
                        r["case"],
                        r["auto_evaluations"],
                        number(r["auto_seconds"]),
                        r["tsit5_evaluations"],
                        number(r["tsit5_seconds"]),
                        number(1 / r["ratio"]),
                    ]
                    for r in easy
                ],
            )
        )
        slowest = max(r["ratio"] for r in easy)
        goals.add("flow, easy cases: time of tsit5 / auto, smallest", 1 / slowest, 0.9)
    return "\n\n".join(parts)


def deep_gram_part(rows, goals):
    good = {r["program"]: r for r in rows if "seconds" in r}
    mine = good.get("wideflow")
    if mine is None:
        return ""
    ratio = lambda program, what: good[program][what] / mine[what] if program in good else math.nan
    name = f"deep tangent Gram, n={mine['samples']}, four layers of 1024"
    goals.add(f"{name}: neural-tangents 3 / wideflow", ratio("neural-tangents 3", "seconds"), 1.0)
    goals.add(f"{name}: torch.func / wideflow", ratio("torch.func", "seconds"), 20)
    goals.add(
        f"{name}: memory of wideflow / torch.func", 1 / ratio("torch.func", "memory"), 0.2, False
    )
    worst = lambda r: max(
        abs(a - b) / abs(b) for x, y in zip(r["corner"], mine["corner"]) for a, b in zip(x, y)
    )
    body = [
        [r["program"], number(1e3 * r["seconds"]), number(r["memory"] / 1e6), f"{worst(r):.1e}"]
        for r in good.values()
    ]
    return table_of(
        [
            "program",
            "ms",
            "peak memory above the initial level, MB",
            "largest relative difference from wideflow (16 entries)",
        ],
        body,
    )


def deep_flow_part(rows, goals):
    good = {r["program"]: r for r in rows if "evaluations" in r}
    mine, explicit = good.get("wideflow gram"), good.get("Diffrax tsit5")
    if mine is None or explicit is None:
        return ""
    ratio = explicit["evaluations"] / mine["evaluations"]
    goals.add(f"flow, {mine['case']}: evaluations of tsit5 / wideflow", ratio, 50)
    note = f"error of the loss {mine['error']:.1e}"
    body = [
        [mine["program"], mine["evaluations"], number(mine["seconds"]), note],
        [explicit["program"], *other_solver(explicit, ("Diffrax tsit5",))],
    ]
    return (
        mine["case"]
        + "\n\n"
        + table_of(["program", "network evaluations", "seconds", "note"], body)
    )


def deep_training_part(rows, goals):
    ms = {r["program"]: r["milliseconds_a_step"] for r in rows if "milliseconds_a_step" in r}
    ratio = ms.get("wideflow", math.nan) / ms.get("hand-written", math.nan)
    case = next((r["case"] for r in rows if "case" in r), "")
    goals.add(f"training step, {case}: wideflow / hand-written Optax loop", ratio, 1.0, False)
    return table_of(
        ["program", "ms per step"], [[name, number(value)] for name, value in ms.items()]
    )


def online_part(rows, goals):
    good = [r for r in rows if "seconds" in r]
    size = lambda r: ", ".join(
        f"{k}={r[k]}" for k in ("features", "width", "batch", "tau") if k in r
    )
    equations = seconds_of(good, "equations")
    goals.add(
        "online, d=1000: simulation / equations", seconds_of(good, "simulation") / equations, 100
    )
    for row in good:
        if row["program"] == "OnlineSGD, a step":
            where = {k: row[k] for k in ("features", "width", "batch")}
            bare = seconds_of(good, "bare products, a step", **where)
            goals.add(
                f"online step, {size(row)}: OnlineSGD / bare products",
                row["seconds"] / bare,
                1.3,
                False,
            )
    body = [[r["program"], size(r), number(1e3 * r["seconds"])] for r in good]
    return table_of(["program", "size", "ms"], body)


def population_part(rows, goals):
    good = [r for r in rows if "seconds" in r]
    body = [
        [r["program"], r.get("width", ""), r.get("features", ""), number(r["seconds"])]
        for r in good
    ]
    return table_of(["program", "width", "features", "seconds"], body)


def growth_part(rows, goals):
    parts = []
    for what, theory in (("width", 1), ("samples", 2)):
        some = [r for r in rows if r.get("program") == f"against the {what}"]
        parts.append(
            table_of(
                [what, "seconds", "peak memory, MB"],
                [[r["size"], number(r["seconds"]), number(r["memory"] / 1e6)] for r in some],
            )
        )
        late = some[-3:]
        if len(late) > 1:
            slope = math.log(late[-1]["seconds"] / late[0]["seconds"]) / math.log(
                late[-1]["size"] / late[0]["size"]
            )
            parts.append(f"Slope over the last {len(late)} sizes: {slope:.2f}, in theory {theory}.")
            if what == "width":
                goals.add("time against the width, slope", slope, 1.05, False)
    return "\n\n".join(parts)


def gpu_part(results: pathlib.Path, goals) -> str:
    place = results / "gpu.json"
    if not place.is_file():
        return (
            "Not measured on this machine: run `python benchmarks/gpu.py` where there is a GPU and "
            "save its last line as `benchmarks/results/gpu.json`."
        )
    table = json.loads(place.read_text())
    rows = [r for r in table["rows"] if r["what"] == "descent"]
    ms = {(r["precision"], r["program"]): r["ms"] for r in rows}
    goals.add(
        "GPU descent, float32: wideflow / bare products",
        ms["float32", "wideflow"] / ms["float32", "bare products"],
        1.25,
        False,
    )
    goals.add(
        "GPU descent, TF32: plain scan / wideflow",
        ms["tf32", "plain scan"] / ms["tf32", "wideflow"],
        2,
    )
    widths = [r["width"] for r in table["rows"] if r["what"] == "largest" and "fault" not in r]
    goals.add(
        "GPU: neurons of the largest network trained (d=16)", float(max(widths, default=0)), 1e8
    )
    body = [[r["precision"], r["program"], number(r["ms"]), number(r["tflops"])] for r in rows]
    more = [
        json.dumps({k: v for k, v in r.items() if k != "what"})
        for r in table["rows"]
        if r["what"] != "descent"
    ]
    head = f"{table['device']}, JAX {table['jax']}; descent at n=1000, d=100, m=1e6.\n\n"
    return (
        head
        + table_of(["precision", "program", "ms per step", "TFLOP/s"], body)
        + "\n\n"
        + "\n".join(f"- `{m}`" for m in more)
    )


PARTS = {
    "descent": ("Full-batch descent", descent_part),
    "gram": ("Tangent Gram matrix (d=50, m=2000, float64)", gram_part),
    "kernels": ("Limit kernels (ReLU, d=50, float64)", kernels_part),
    "deep_kernels": ("Deep limit kernels (ReLU, both kernels, float64)", deep_kernels_part),
    "kernel_regression": ("Kernel regression of 20,000 images", kernel_regression_part),
    "flow": ("Gradient flow to a stated accuracy of the loss", flow_part),
    "deep_gram": ("Tangent Gram matrix of a deep network (float64)", deep_gram_part),
    "deep_flow": ("Gradient flow of a deep network", deep_flow_part),
    "deep_training": ("A training step of a deep network", deep_training_part),
    "online": ("Online learning", online_part),
    "population": ("Exact population gradient against sampling", population_part),
    "growth": ("Growth", growth_part),
}


def write_page(table: dict, results: pathlib.Path, docs: pathlib.Path) -> str:
    """Writes docs/performance.md and the plot; the text of the goals."""
    goals, parts = Goals(), []
    for name, (title, part) in PARTS.items():
        measurement = table["measurements"].get(name)
        if measurement is None:
            parts.append(f"## {title}\n\nNot measured yet.")
            continue
        faults = [f"- {r['program']}: {r['fault']}" for r in measurement["rows"] if "fault" in r]
        text = part(measurement["rows"], goals)
        when, load = measurement["when"], measurement["load"]
        note = f"*{when}, load of the machine at the beginning {load:.1f}.*"
        parts.append(
            f"## {title}\n\n{text}\n\n{note}"
            + ("\n\nNot measured:\n\n" + "\n".join(faults) if faults else "")
        )
    parts.append("## Accelerator\n\n" + gpu_part(results, goals))
    goals_table = table_of(["ratio, both sides in one run", "measured", "goal", ""], goals.rows)
    machine = table.get("machine", {})
    head = (
        "# Performance\n\nWritten by `make bench` from `benchmarks/results/latest.json`; do not "
        "edit it by hand. Only ratios within one run mean anything.\n\n"
        f"Machine: {machine.get('processor', '')}, {machine.get('cores', '?')} cores, Python "
        f"{machine.get('python', '')}.\n"
    )
    docs.mkdir(exist_ok=True)
    page = "\n\n".join([head, "## Goals\n\n" + goals_table, NOTES, *parts])
    (docs / "performance.md").write_text(page + "\n")
    draw(goals, results)
    return goals_table


NOTES = """### Where a goal is missed

- *Descent against the bare products*: a step also evaluates the activation and its slope on n x m numbers and updates d x m weights. At d = 50 that is a
  third of the time of the products on a CPU; at d = 5 or 8 it is most of it, so the ratio is reported only for the size of the paper's simulations.
- *Descent against PyTorch*: on these cores PyTorch's times vary by a factor of up to two between runs (eager, n=100, float64: 961 and 2,230 microseconds on one day; compiled, float32: 396 and 878), wideflow's by a fifth; so do the ratios.
- *Flow*: evaluations count forward passes of the network. A stage of the exponential flow also forms the Gram matrix and decomposes it, which costs about
  as much as three to five passes at these sizes; the ratio of times is therefore smaller than that of evaluations.
- *Flow with ReLU*: a step follows the neurons through their kinks, which costs 40 sweeps for each of three single steps, each counted as an evaluation; a sweep takes three to five times as long as a forward pass, and following the neurons takes half of a step's
  time, although they are processed in blocks that fit the cache. Over these times descent at its largest rate takes 18,000 to 38,000 steps, and does not need accurate single paths to get the loss right: it is the harder rival, and the table shows both.
  On energy the loss falls to 2e-5 of its initial value, where an accuracy of 2 % needs small steps; at gamma = 0.5 single neurons carry much of the function, and steps are short because the kinks they meet cannot be predicted far ahead.
  The ReLU rows were measured before each step was checked by two of half its size: at the same tolerance a step now costs 129 evaluations instead of 35, a record ends a step, and the loss is far more accurate; the rows still have to be measured again at the same accuracy.
- *Growth with the width*: up to 1e5 neurons, the weights and pre-activations of 20 samples stay in the cache, and a neuron costs 7 to 13 ns; beyond that, neurons are processed in blocks whose pre-activations fit the cache, but
  weights and gradients go through main memory, and a neuron costs 22 to 26 ns (33 to 40 without blocks). The slope over the last three sizes includes that jump; on either side of it the growth is linear.
- A busy machine slows down programs with two threads more than those with one; see `load`."""


def draw(goals: Goals, results: pathlib.Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows = [r for r in goals.rows if r[1] != "not measured"]
    if not rows:
        return
    figure, axes = plt.subplots(figsize=(11, 0.28 * len(rows) + 1))
    for verdict, colour in (("met", "tab:green"), ("missed", "tab:red")):
        places = [i for i, r in enumerate(rows) if r[3].startswith(verdict)]
        axes.plot([float(rows[i][1]) for i in places], places, "o", color=colour, label=verdict)
    goal = [float(r[2].split()[-1]) for r in rows]
    axes.plot(goal, range(len(rows)), "|", color="black", markersize=12, label="goal")
    axes.set(
        yticks=range(len(rows)),
        yticklabels=[r[0] for r in rows],
        ylim=(len(rows) - 0.5, -0.5),
        xscale="log",
        xlabel="ratio",
    )
    axes.tick_params(axis="y", labelsize=7)
    axes.grid(axis="x", alpha=0.3)
    axes.legend(loc="upper right")
    figure.savefig(results / "ratios.png", dpi=120, bbox_inches="tight")
    plt.close(figure)
