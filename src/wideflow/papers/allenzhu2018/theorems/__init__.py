"""allenzhu2018: improper learning with two and three layers; a file a family of statements."""

from .couplings import (
    Lemma55CrossTerm as Lemma55CrossTerm,
    Lemma55SignChanges as Lemma55SignChanges,
    Lemma57 as Lemma57,
    Lemma58 as Lemma58,
    LemmaG3 as LemmaG3,
)
from .gaussian_lemmas import (
    ClaimB1 as ClaimB1,
    LemmaA1 as LemmaA1,
    LemmaA2 as LemmaA2,
    LemmaA4 as LemmaA4,
    LemmaA5 as LemmaA5,
    LemmaA6 as LemmaA6,
    LemmaA7 as LemmaA7,
    LemmaA8 as LemmaA8,
)
from .generalisation import Lemma59 as Lemma59, LemmaG5 as LemmaG5
from .learning import (
    Theorem41 as Theorem41,
    Theorem42 as Theorem42,
    Theorem43 as Theorem43,
    WidthIndependence as WidthIndependence,
)
from .optimisation import (
    Lemma53 as Lemma53,
    Lemma53Printed as Lemma53Printed,
    Lemma54 as Lemma54,
    LemmaG4 as LemmaG4,
    signed_quartic as signed_quartic,
)
from .representation import (
    CorollaryG2 as CorollaryG2,
    Lemma51 as Lemma51,
    Lemma52 as Lemma52,
    Lemma56 as Lemma56,
    LemmaG1 as LemmaG1,
)
