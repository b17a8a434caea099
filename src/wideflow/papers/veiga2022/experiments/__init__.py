"""The experiments of veiga2022, registered by name in `PAPER`."""
