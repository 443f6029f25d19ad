"""The systems of the literature on the common core: a file each, and nobody lists them by hand."""
