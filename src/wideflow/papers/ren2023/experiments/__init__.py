"""The experiments of ren2023: a file a figure or statement, registered by name in `PAPER`."""
