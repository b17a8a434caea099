"""caron2023: asymmetric node scaling; a file a theorem or a family of lemmas."""

from .convergence import Theorem41 as Theorem41, Theorem42 as Theorem42
from .decay import LemmaD1 as LemmaD1, SlidingKinks as SlidingKinks
from .first_step import Theorem51 as Theorem51, Theorem52 as Theorem52
from .gram_at_start import (
    Proposition31 as Proposition31,
    Proposition33 as Proposition33,
    PropositionC1 as PropositionC1,
    chernoff_lower as chernoff_lower,
    chernoff_upper as chernoff_upper,
)
from .node_weights import PropositionA2 as PropositionA2
from .problem import RECORD as RECORD, Problem as Problem, gather as gather
from .stability import LemmaD2 as LemmaD2, LemmaD4 as LemmaD4
from .sufficient import LemmaD3 as LemmaD3, LemmaD5 as LemmaD5
