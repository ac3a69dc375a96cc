"""Reports on runs: tables, charts, an answer in sentences, and the HTML page."""
