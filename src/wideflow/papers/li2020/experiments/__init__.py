"""The experiments of li2020: a file a figure or statement, registered by name in `PAPER`."""
