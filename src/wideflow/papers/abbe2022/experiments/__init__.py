"""The experiments of abbe2022, registered by name in `PAPER`."""
