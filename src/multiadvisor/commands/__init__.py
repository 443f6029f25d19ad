"""One file for each command of `multiadvisor`; `parsing` has what they share."""
