"""What a tool process in Python is written with, and the wire between it and contextd.

Nothing is imported here: contextd itself needs the names of the handshake, and not gRPC, at its start.
"""
