"""Platform files of SimGrid, as a format of `tutti convert`."""
