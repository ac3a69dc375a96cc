"""Keep finished model calls in a journal: each is on disk before its reply is used, and none is made twice."""
