"""Speed, measured in steps beside peers and a native reference; `multiadvisor benchmark`."""
