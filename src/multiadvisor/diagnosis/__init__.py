"""What each term of a reward does to a policy, anyone's: counted, valued where calibrated, and branched."""
