"""The outside world behind the ports; one driver each."""
