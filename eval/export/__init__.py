"""Tables as Markdown, CSV and LaTeX."""
