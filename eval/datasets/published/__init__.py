"""Published datasets: where they come from, and how their rows become items."""
