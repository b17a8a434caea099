"""A sentence on every panel of free play: what is drawn, and what to look for."""

HELP = {
    "Learned function": "The network's function now, at the start (dotted) and as its "
    "linearisation would end (dashed), with the data and the points where neurons switch. "
    "Rich training moves these points to where they are needed; lazy training leaves them where "
    "they were drawn.",
    "Predicted against true": "What the network says of every row against its target; on the "
    "dotted line they are equal. Rows on which it was not trained show how far it "
    "generalises.",
    "Loss": "What descent brings down, and dashed what the loss would be if the kernel stayed as "
    "it was at the start.",
    "From lazy to rich": "How far the tangent kernel has changed, and what share of the outputs' "
    "change the linearisation misses. The larger of the two is the richness on the dial.",
    "Training and test error": "The mean of squares on the samples that are learnt and on 100 "
    "others of the same kind (of a table, rows set aside).",
    "Weight movement per node": "How far every node's weights have gone. Under a node scaling "
    "the first nodes carry the weight and move.",
    "Features of two inputs": "What every node sees of the first two samples, at the start and "
    "now. Points that stay are features that are not learnt.",
    "Eigenvalues of the kernel": "The largest eigenvalue of the tangent Gram matrix (2 over it "
    "is the largest stable rate), and the median with the quartiles around it: these modes "
    "are learnt at rates in proportion.",
    "Spectrum of the tangent Gram matrix": "All its eigenvalues by size, at the start, now (the "
    "mean of the last eight records), and dashed at infinite width.",
}
