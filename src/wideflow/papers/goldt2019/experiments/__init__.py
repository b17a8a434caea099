"""The experiments of goldt2019, registered by name in `PAPER`."""
