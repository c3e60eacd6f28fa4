"""How runs of kernels on coherent chips are shown."""
