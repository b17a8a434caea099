"""Points of a scrambled Sobol sequence as standard normal vectors: means of smooth functions of few
normals converge almost like one over their number.
"""

import math

import numpy as np

LEAST = 2.0**-40  # from 0 and 1, where the normal quantile is infinite: 7 standard deviations


def sobol_normals(points: int, dimensions: int, seed) -> np.ndarray:
    """Standard normals, (point, dimension).

    Args:
        points: any number; powers of two are balanced best.
        dimensions: at most 21,201.
        seed: of the scrambling, whatever `numpy.random.default_rng` takes. Scrambles are
            independent and each one is unbiased.
    """
    from scipy.special import ndtri
    from scipy.stats import qmc  # slow to import, and few calls need it

    sequence = qmc.Sobol(dimensions, rng=np.random.default_rng(seed))
    # The first points of the next power of two are those of a shorter call, without SciPy's warning
    # about their balance.
    uniform = sequence.random_base2(math.ceil(math.log2(points)))[:points]
    # scrambled points are multiples of 2^-30 or so: 0 itself can occur, and would be minus infinity
    return ndtri(np.clip(uniform, LEAST, 1 - LEAST))
