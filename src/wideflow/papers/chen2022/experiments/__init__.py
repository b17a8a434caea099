"""The experiments of chen2022: a file a figure or statement, registered by name in `PAPER`."""
