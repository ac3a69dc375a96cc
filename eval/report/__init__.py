"""Report on runs: in tables, charts, an answer in sentences, and the HTML page."""
