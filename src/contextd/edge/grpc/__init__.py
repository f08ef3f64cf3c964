"""The wire of gRPC: the definition, and what `make proto` generates from it."""
