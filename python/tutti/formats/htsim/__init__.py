"""Files of htsim: connection matrices and topologies."""
