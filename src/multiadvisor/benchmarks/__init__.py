"""Speed, measured in turns beside peers and a native reference; `multiadvisor benchmark`."""
