"""A sentence on every panel of free play: what is drawn, and what to look for."""

HELP = {
    "Learned function": "The network's function now, before training (dotted) and at the end of "
    "linearised training (dashed), with the data and the points at which neurons switch on. "
    "Rich training moves these points to where they are needed; lazy training leaves them "
    "where they were initialised.",
    "Predicted against true": "The network's prediction for every row against its target; on the "
    "dotted line they are equal. Rows on which it was not trained show how well it "
    "generalises.",
    "Loss": "The training loss, and, dashed, what it would be if the kernel stayed as it was "
    "before training.",
    "From lazy to rich": "How far the tangent kernel has changed, and what share of the change "
    "in the outputs the linearisation misses. The larger of the two is the richness on the "
    "dial.",
    "Training and test error": "The mean square error on the training samples and on 100 others "
    "of the same kind (for a table, on held-out rows).",
    "Weight movement per node": "How far every node's weights have moved. Under a node scaling "
    "the first nodes carry the weight and move.",
    "Features of two inputs": "The pre-activation of every node on the first two samples, before "
    "training and now. Points that do not move are features that are not learned.",
    "Eigenvalues of the kernel": "The largest eigenvalue of the tangent Gram matrix (the largest "
    "stable rate is 2 divided by it), and the median with the quartiles around it: modes are "
    "learned at rates proportional to their eigenvalues.",
    "Spectrum of the tangent Gram matrix": "All its eigenvalues by size, before training, now "
    "(the mean of the last eight records) and, dashed, at infinite width.",
}
