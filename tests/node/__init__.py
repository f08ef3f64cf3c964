"""Clients that are Node.js programs, installed from npm."""
