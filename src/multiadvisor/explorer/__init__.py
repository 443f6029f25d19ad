"""The explorer: a local page that shows what each advisor wants, who won, and where the aggregator is stuck."""
