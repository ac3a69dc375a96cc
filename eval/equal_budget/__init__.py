"""Does the debate pay? A protocol beside what the same budget buys of a single judge, on the same items."""
