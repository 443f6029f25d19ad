"""Update rules of tables, one file each."""
