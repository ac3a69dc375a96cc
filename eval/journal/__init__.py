"""The journal of finished model calls: each is stored before its reply is used."""
