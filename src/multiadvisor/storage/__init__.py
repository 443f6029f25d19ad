"""What is kept on disk: files written atomically, checkpoints, sealed records and locks."""
