"""How plans, reports and measurements over MPI are shown."""
