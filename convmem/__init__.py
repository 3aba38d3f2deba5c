"""convmem: one daemon that remembers for all of a person's agents."""

__version__ = "0.1.0"
