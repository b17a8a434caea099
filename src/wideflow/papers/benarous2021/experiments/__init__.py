"""The experiments of benarous2021, registered by name in `PAPER`."""
