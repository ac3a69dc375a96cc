"""Graphs around a judge: both orders, repeats, cascade, review, ranking, rewriting, gate, audit."""
