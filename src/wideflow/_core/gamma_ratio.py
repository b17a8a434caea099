r"""$\Gamma(x)/\Gamma(x+\frac12)$ without the cancellation of two logarithms."""

import math

SERIES_FROM = 500.0  # below, the difference of logarithms is good to 3e-13; above, it loses digits


def gamma_ratio(x: float) -> float:
    r"""$\Gamma(x)/\Gamma(x+\frac12)$, $x > 0$.

    For large $x$, with $z = x - \frac14$, it is $z^{-1/2}\big(1 - \frac1{64z^2} +
    \frac{21}{8192z^4} - \dots\big)$: the next term is below $10^{-19}$ there.

    >>> round(gamma_ratio(0.5) ** 2 / math.pi, 14)  # Gamma(1/2) = sqrt(pi), Gamma(1) = 1
    1.0
    """
    if x <= SERIES_FROM:
        return math.exp(math.lgamma(x) - math.lgamma(x + 0.5))
    z = x - 0.25
    return (1 - 1 / (64 * z**2) + 21 / (8192 * z**4)) / math.sqrt(z)
