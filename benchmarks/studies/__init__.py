"""Studies of our own, which `multiadvisor reproduce` knows in a checkout: hours of runs, beside other libraries."""
