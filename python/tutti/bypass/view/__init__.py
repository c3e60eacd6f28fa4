"""How meshes with bypass links and runs on them are shown."""
