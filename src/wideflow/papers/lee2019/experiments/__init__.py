"""Experiments of lee2019: infinite-width kernels against finite networks."""
