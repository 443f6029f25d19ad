"""`python -m multiadvisor`."""

from multiadvisor.cli import command

command()
