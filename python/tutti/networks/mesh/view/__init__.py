"""How runs of single-cycle meshes are shown."""
