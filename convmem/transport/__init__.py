"""The way in: HTTP on two kinds of sockets and stdio, all ending in the catalog."""
