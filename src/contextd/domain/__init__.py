"""What contextd talks about, with no idea of how it is stored, sent or served."""
