"""The experiments of caron2023: a file a figure or statement, registered by name in `PAPER`."""
