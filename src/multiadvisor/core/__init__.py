"""The maths and the tools that every layer uses."""
