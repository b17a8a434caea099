"""The certificate's figure."""

import math

import numpy as np

from ..figures import Bars, FigureSpec, HLine, Line, Mark, Panel, Points, VLine
from ..observables.regime import LAZY, RICH


def draw(certificate) -> FigureSpec:
    panels = [_spectrum(certificate), _losses(certificate)]
    if certificate.laziness.widths:
        panels.append(
            _along(
                "along the width",
                "width",
                certificate.laziness.widths,
                certificate.laziness.along_width,
                "log",
                certificate.subject.get("width"),
            )
        )
    if certificate.laziness.gammas:
        panels.append(
            _along(
                "along gamma",
                r"$\gamma$",
                certificate.laziness.gammas,
                certificate.laziness.along_gamma,
                "linear",
                None,
            )
        )
    required = [
        p
        for p in certificate.promises
        if math.isfinite(p.required) and p.required > 0 and p.width_helps
    ]
    if required:
        panels.append(_widths(required))
    return FigureSpec(
        f"Certificate of {certificate.subject['data']}",
        panels,
        columns=2,
        caption=certificate.headline,
    )


def _spectrum(certificate) -> Panel:
    marks = []
    for report, label in (
        (certificate.mean, "mean Gram"),
        (certificate.own, "this network's Gram"),
    ):
        if report is not None:
            values = report.eigenvalues[::-1]
            marks.append(Line(np.arange(1, len(values) + 1), np.maximum(values, 1e-300), label))
    report = certificate.mean or certificate.own
    marks.append(
        Line([1, len(report.eigenvalues)], [report.bar, report.bar], "error bar", dash="dotted")
    )
    return Panel("spectrum of the tangent Gram matrix", "index", "eigenvalue", marks, "log", "log")


def _losses(certificate) -> Panel:
    timing = certificate.timing
    moving = timing.curve_times > 0
    marks: list[Mark] = [
        Line(timing.curve_times[moving], timing.curve_losses[moving], "linearised prediction")
    ]
    if certificate.followed is not None:
        table = certificate.followed.table
        shown = table["time"].values > 0
        marks.append(
            Points(table["time"].values[shown], table["loss"].values[shown], "the flow itself")
        )
    for promise in certificate.promises:
        if promise.outcome.name == "HOLDS" and math.isfinite(promise.rate):
            bound = timing.initial_loss * np.exp(-promise.rate * timing.curve_times[moving])
            marks.append(
                Line(
                    timing.curve_times[moving],
                    np.maximum(bound, 1e-300),
                    promise.name,
                    dash="dashed",
                )
            )
    return Panel("loss over time", "flow time", "half sum of squares", marks, "log", "log")


def _along(title: str, x: str, places, regimes, scale: str, here) -> Panel:
    marks: list[Mark] = [
        Line(places, [r.kernel_change for r in regimes], "kernel change"),
        Line(places, [r.linearisation_gap for r in regimes], "linearisation gap"),
        *(
            Line([places[0], places[-1]], [level, level], label, dash="dotted")
            for level, label in ((LAZY, "lazy below"), (RICH, "rich above"))
        ),
    ]
    if here is not None:
        marks.append(VLine(float(here), "this network"))
    return Panel(f"laziness {title}", x, "relative change", marks, scale, "log")


def _widths(promises) -> Panel:
    marks = [
        Bars([p.name for p in promises], [math.log10(p.required) for p in promises]),
        HLine(math.log10(promises[0].available), "this network"),
    ]
    return Panel("required width", "", r"$\log_{10}$ of the width", marks)
