"""Files of ASTRA-sim: networks, systems and workloads."""
