"""4. Gradient flow to a stated accuracy of the loss: network evaluations and time, against Diffrax,
SciPy and descent.

Every program runs the same network (float64) to the same time; a reference is the exponential flow
at a tight tolerance, with kinks descent at a quarter of the largest stable rate. Of each solver the
loosest tolerance of a ladder whose loss lies within the accuracy is taken. SciPy's and Diffrax's
explicit solvers are stopped at a limit of evaluations; then the row says what a run to the end
would have cost, in proportion to the time reached.
"""

import os
import pathlib
import sys
import time

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from timing import report

import wideflow as wf

FOLDER = pathlib.Path(
    os.environ.get("WIDEFLOW_DATA", pathlib.Path(__file__).parents[2] / "shared" / "data")
)
CASES = {  # name: (data set, rows, width, activation, gamma, time, accuracy of the loss)
    "concrete tanh": ("concrete", 412, 2000, "tanh", 1.0, 1e4, 0.01),
    "energy tanh": ("energy", 307, 2000, "tanh", 1.0, 1e4, 0.01),
    "airfoil tanh": ("airfoil", 601, 2000, "tanh", 1.0, 1e4, 0.01),
    "concrete softplus": ("concrete", 412, 2000, "softplus", 1.0, 1e4, 0.01),
    "energy softplus": ("energy", 307, 2000, "softplus", 1.0, 1e4, 0.01),
    "airfoil softplus": ("airfoil", 601, 2000, "softplus", 1.0, 1e4, 0.01),
    "concrete tanh, 200 rows": ("concrete", 200, 400, "tanh", 1.0, 1e4, 0.01),
    "concrete tanh, gamma 0.5": ("concrete", 200, 400, "tanh", 0.5, 1e4, 0.01),
    "concrete relu": ("concrete", 412, 2000, "relu", 1.0, 1e3, 0.02),
    "energy relu": ("energy", 307, 2000, "relu", 1.0, 1e3, 0.02),
    "airfoil relu": ("airfoil", 601, 2000, "relu", 1.0, 1e3, 0.02),
    "concrete relu, gamma 0.5": ("concrete", 200, 400, "relu", 0.5, 1e3, 0.02),
}
LADDER = (1e-2, 3e-3, 1e-3, 3e-4)


def load(name: str, rows: int):
    """The training rows of caron2023: permuted as released, standardised by themselves."""
    table = np.loadtxt(FOLDER / f"{name}.csv", delimiter=",", skiprows=1)
    x, y = (table[:, :8], table[:, 8]) if name == "energy" else (table[:, :-1], table[:, -1])
    places = np.random.RandomState(10).permutation(len(x))[:rows]
    return wf.Dataset(x[places], y[places], name).standardised()


def problem(name: str):
    dataset, rows, width, activation, gamma, end, accuracy = CASES[name]
    data = load(dataset, rows)
    scaling = wf.scalings.NTK() if gamma == 1 else wf.scalings.Zipf(gamma=gamma, alpha=0.5)
    net = wf.Shallow.init(
        jax.random.key(0),
        features=data.dimension,
        width=width,
        scaling=scaling,
        activation=activation,
    )
    return net, data, end, accuracy


def by_gram(net, data, end, tolerance):
    flow = wf.GradientFlow(tolerance, method="gram")
    wf.train(net, data, flow, time=end * 1e-9, every=[end * 1e-9])  # compiles
    began = time.perf_counter()
    run = wf.train(net, data, flow, time=end, every=[end])
    return (
        float(run.table.loss[-1]),
        int(run.state.evaluations),
        int(run.state.steps),
        time.perf_counter() - began,
    )


def field_of(net, data):
    features, targets = net.embed(data.inputs), jnp.asarray(data.targets)
    objective = data.objective(wf.losses.HalfSumSquares(), net)

    @jax.jit
    def field(_, flat):
        model = _with(net, flat.reshape(net.weights.shape))
        return -objective.gradient(model)[1]["weights"].ravel()

    def loss(flat):
        model = _with(net, jnp.asarray(flat).reshape(net.weights.shape))
        return float(jnp.sum((model.respond(features) - targets) ** 2) / 2)

    return (lambda t, w: np.asarray(field(t, w))), loss


def _with(net, weights):
    return eqx.tree_at(lambda m: m.weights, net, weights)


def by_scipy(solver, net, data, end, tolerance, limit):
    """(loss, evaluations, seconds, share of the time reached)."""
    from scipy import integrate  # after wideflow, which tells SciPy's LAPACK not to spin

    field, loss = field_of(net, data)
    start = np.asarray(net.weights).ravel()
    field(0.0, start)
    began = time.perf_counter()
    run = getattr(integrate, solver)(field, 0.0, start, end, rtol=tolerance, atol=1e-6)
    while run.status == "running" and run.nfev < limit:
        run.step()
    return loss(run.y), run.nfev, time.perf_counter() - began, run.t / end


def by_diffrax(method, net, data, end, tolerance, seconds):
    """The same through `GradientFlow(method=...)`, over a stretch of time short enough, then in
    proportion.
    """
    flow = wf.GradientFlow(tolerance, method=method)
    share = 1e-4
    while True:
        stop = end * share
        wf.train(net, data, flow, time=stop * 1e-6, every=[stop * 1e-6])
        began = time.perf_counter()
        run = wf.train(net, data, flow, time=stop, every=[stop])
        spent = time.perf_counter() - began
        if share == 1 or spent > seconds:
            return float(run.table.loss[-1]), int(run.state.evaluations), spent, share
        share = min(1.0, share * max(2.0, 0.7 * seconds / spent))


def by_descent(net, data, end, exact, accuracy, seconds):
    """(evaluations, seconds, share of the time): at 1.9 over the largest eigenvalue, the largest
    rate that does not diverge.

    Where a whole run is short enough, it must be as accurate as the others: the rate is halved
    until it is.
    """
    rate, sample = 1.9 / _top(net, data), 200
    while True:
        descent, steps = wf.GradientDescent(rate), round(end / rate)
        wf.train(net, data, descent, steps=10, every=10)
        began = time.perf_counter()
        wf.train(net, data, descent, steps=sample, every=sample)
        spent = (time.perf_counter() - began) * steps / sample
        if spent > seconds:
            return steps, spent, sample / steps
        began = time.perf_counter()
        run = wf.train(net, data, descent, steps=steps, every=steps)
        spent = time.perf_counter() - began
        if abs(float(run.table.loss[-1]) / exact - 1) <= accuracy:
            return steps, spent, 1.0
        rate /= 2


def reference(name, net, data, end):
    """(loss, evaluations, seconds)."""
    if "relu" not in name:
        loss, evaluations, _, spent = by_gram(net, data, end, 1e-4)
        return loss, evaluations, spent
    steps, began = round(end / (0.5 / _top(net, data))), time.perf_counter()
    run = wf.train(net, data, wf.GradientDescent(end / steps), steps=steps, every=steps)
    return float(run.table.loss[-1]), steps, time.perf_counter() - began


def _top(net, data) -> float:
    return float(jnp.linalg.eigvalsh(wf.observables.tangent_gram(net, data.inputs))[-1])


def main(names, limit: int, seconds: float):
    rows = []
    with jax.enable_x64(True):
        for name in names:
            net, data, end, accuracy = problem(name)
            exact, *cost = reference(name, net, data, end)
            rows.append(
                {
                    "case": name,
                    "program": "reference",
                    "loss": exact,
                    "evaluations": cost[0],
                    "seconds": cost[1],
                }
            )
            print(rows[-1], flush=True)
            for tolerance in LADDER:
                loss, evaluations, steps, spent = by_gram(net, data, end, tolerance)
                error = abs(loss / exact - 1)
                if error <= accuracy:
                    break
            rows.append(
                {
                    "case": name,
                    "program": "wideflow gram",
                    "tolerance": tolerance,
                    "error": error,
                    "steps": steps,
                    "evaluations": evaluations,
                    "seconds": spent,
                }
            )
            print(rows[-1], flush=True)
            for solver in ("RK45", "LSODA"):
                label = f"SciPy {solver}"
                if solver == "LSODA" and net.weights.size > 5000:
                    continue  # its dense Jacobian of all weights does not fit
                loss, evaluations, spent, share = by_scipy(solver, net, data, end, 1e-3, limit)
                rows.append(
                    {
                        "case": name,
                        "program": label,
                        "evaluations": evaluations / share,
                        "seconds": spent / share,
                        "share": share,
                    }
                )
                print(rows[-1], flush=True)
            for method in ("tsit5", "kvaerno5"):
                if method == "kvaerno5" and (net.weights.size > 3300 or "relu" in name):
                    # likewise; at kinks its Newton iteration fails: nothing after six minutes
                    continue
                loss, evaluations, spent, share = by_diffrax(method, net, data, end, 1e-3, seconds)
                rows.append(
                    {
                        "case": name,
                        "program": f"Diffrax {method}",
                        "evaluations": evaluations / share,
                        "seconds": spent / share,
                        "share": share,
                    }
                )
                print(rows[-1], flush=True)
            steps, spent, share = by_descent(net, data, end, exact, accuracy, 3 * seconds)
            rows.append(
                {
                    "case": name,
                    "program": "descent",
                    "evaluations": steps,
                    "seconds": spent,
                    "share": share,
                }
            )
            print(rows[-1], flush=True)
    report(rows)


if __name__ == "__main__":
    main(sys.argv[1:] or list(CASES), limit=4000, seconds=20)
