"""Figures, drawn with matplotlib (``pip install "jurygraph[report]"``), which is loaded when one is drawn."""
