"""The little TeX of axis labels as plain Unicode, for the page (Matplotlib sets it itself)."""

import re

_WORDS = {
    "alpha": "α",
    "beta": "β",
    "gamma": "γ",
    "delta": "δ",
    "epsilon": "ε",
    "varepsilon": "ε",
    "zeta": "ζ",
    "eta": "η",
    "theta": "θ",
    "vartheta": "ϑ",
    "kappa": "κ",
    "lambda": "λ",
    "mu": "μ",
    "nu": "ν",
    "xi": "ξ",
    "pi": "π",
    "rho": "ρ",
    "sigma": "σ",
    "tau": "τ",
    "phi": "φ",
    "varphi": "φ",
    "chi": "χ",
    "psi": "ψ",
    "omega": "ω",
    "Gamma": "Γ",
    "Delta": "Δ",
    "Theta": "Θ",
    "Lambda": "Λ",
    "Sigma": "Σ",
    "Phi": "Φ",
    "Psi": "Ψ",
    "Omega": "Ω",
    "infty": "∞",
    "le": "≤",
    "leq": "≤",
    "ge": "≥",
    "geq": "≥",
    "times": "×",
    "cdot": "·",
    "pm": "±",
    "approx": "≈",
    "sim": "∼",
    "to": "→",
    "partial": "∂",
    "nabla": "∇",
    "sum": "∑",
    "ell": "ℓ",
    "langle": "⟨",
    "rangle": "⟩",
    "lVert": "‖",
    "rVert": "‖",
    "Vert": "‖",
    "|": "‖",
    "propto": "∝",
    "sqrt": "√",
    "dot": "",
    "hat": "",
    "bar": "",
    "tilde": "",
    "mathrm": "",
    "mathbf": "",
    "mathcal": "",
    "mathbb": "",
    "text": "",
    "operatorname": "",
    "left": "",
    "right": "",
}
_UP = dict(zip("0123456789+-=()nit", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱᵗ"))
_DOWN = dict(zip("0123456789+-=()aeijklmnoprstuvx", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ"))


def as_text(label: str) -> str:
    """The label with its `$...$` parts in Unicode.

    >>> as_text(r"$\\lambda_{\\min}(\\Theta)$ at $t=10^{-3}$")
    'λₘᵢₙ(Θ) at t=10⁻³'
    """
    return re.sub(r"\$([^$]*)\$", lambda match: _formula(match.group(1)), label)


def _formula(tex: str) -> str:
    tex = re.sub(
        r"\\([A-Za-z]+|\|)\s*", lambda match: _WORDS.get(match.group(1), match.group(1)), tex
    )
    tex = re.sub(r"\\[,;:! ]", " ", tex)
    tex = re.sub(r"\^(\{[^{}]*\}|.)", lambda match: _raised(match.group(1), _UP, "^"), tex)
    tex = re.sub(r"_(\{[^{}]*\}|.)", lambda match: _raised(match.group(1), _DOWN, "_"), tex)
    return tex.replace("{", "").replace("}", "")


def _raised(group: str, table: dict[str, str], sign: str) -> str:
    inner = group.strip("{}")
    return "".join(table[c] for c in inner) if all(c in table for c in inner) else sign + inner
