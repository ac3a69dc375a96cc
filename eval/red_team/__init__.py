"""How does a judge hold out against texts that judge themselves? Attacks as data, on readers and on real judges."""
