"""Keep what a run leaves behind: results, manifest, log; read it again, merge it, and compare it with labels."""
