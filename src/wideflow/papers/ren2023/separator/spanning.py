r"""Whether the first layer sees every ray: $F(\bar x) > 0$ for all directions."""

import numpy as np


def sees_every_ray(first) -> bool:
    r"""Whether no direction has $w_i \cdot \bar x \le 0$ for every neuron $i$, that is the $w_i$
    span $\mathbb{R}^d$ with positive coefficients.

    By Stiemke's lemma: the rows have rank $d$, and $\sum_i \lambda_i w_i = 0$ for some
    $\lambda \ge 1$. On a ray with $F = 0$ the network is constant, and on a heavy-tailed law the
    pull $E_r\{S r\}$ is infinite there.
    """
    from scipy.optimize import linprog  # a fifth of a second that importing wideflow need not take

    rows = np.asarray(first, float)
    width, d = rows.shape
    if np.linalg.matrix_rank(rows) < d:
        return False
    count = min(width, 4 * d)  # a few neurons are enough for most layers, and cheap
    while True:
        some = rows[:count].T
        least = linprog(
            np.zeros(count), A_eq=some, b_eq=np.zeros(d), bounds=(1, None), method="highs"
        )
        if least.status == 0:
            return True
        if count == width:
            return False
        count = min(width, 4 * count)
