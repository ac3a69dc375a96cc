"""Reports on runs: tables, charts, the answer in sentences, and the HTML page."""
