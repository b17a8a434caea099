"""The experiments of saad1995, registered by name in `PAPER`."""
