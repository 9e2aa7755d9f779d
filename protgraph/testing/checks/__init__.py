"""The checks themselves: each a function of a trial that raises where a component fails and says how near it came."""
