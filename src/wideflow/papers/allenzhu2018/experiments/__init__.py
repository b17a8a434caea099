"""The experiments of allenzhu2018: a file a figure or statement, registered by name in `PAPER`."""
