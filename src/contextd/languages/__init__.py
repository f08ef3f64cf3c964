"""One file a language: what a symbol, a chunk and a doc comment is."""
