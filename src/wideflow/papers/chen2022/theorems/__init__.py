"""Partially trained networks: the active-neuron certificate and linear convergence (chen2022)."""

from .constants import (
    active_floor as active_floor,
    active_floor_exact as active_floor_exact,
    beta as beta,
    features_for_gram as features_for_gram,
    kappa as kappa,
    output_proxies as output_proxies,
    slope_floor as slope_floor,
    sub_gaussian_bound as sub_gaussian_bound,
    suggested_interval as suggested_interval,
    width_for_activity as width_for_activity,
    width_for_loss as width_for_loss,
)
from .convergence import (
    Corollary1 as Corollary1,
    Lemma4 as Lemma4,
    Theorem1 as Theorem1,
    Theorem2 as Theorem2,
    Theorem3 as Theorem3,
    gram_event as gram_event,
)
from .full_check import FullCheck as FullCheck, full_check as full_check
from .identities import (
    MonotoneLoss as MonotoneLoss,
    MovementBound as MovementBound,
    PolyakLojasiewicz as PolyakLojasiewicz,
)
from .initial import Lemma2 as Lemma2, Lemma3 as Lemma3
from .lemma1 import Certificate as Certificate, Lemma1 as Lemma1, Lemma1Steps as Lemma1Steps
from .problem import Problem as Problem, gather as gather, record as record
