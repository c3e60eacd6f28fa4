"""Files of BookSim 2: configurations, their routers and traffic."""
