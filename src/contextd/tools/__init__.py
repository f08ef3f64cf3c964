"""What an agent can call: one declaration a tool."""
