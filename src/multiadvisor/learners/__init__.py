"""What learns the advisors' values: tables, networks, actors, general value functions."""
