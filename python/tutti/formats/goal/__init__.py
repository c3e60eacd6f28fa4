"""GOAL, the traces of LogGOPSim and ATLAHS."""
