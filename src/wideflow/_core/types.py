"""Shape-named aliases. Axis names are those of every table: sample, feature, width, output."""

from jaxtyping import Array, Float, Key as _Key, Real

Key = _Key[Array, ""]
Inputs = Real[Array, "sample feature"]
Targets = Real[Array, " sample *output"]
Outputs = Float[Array, " sample *output"]
Gram = Float[Array, "sample sample"]
Scalar = Float[Array, ""]
