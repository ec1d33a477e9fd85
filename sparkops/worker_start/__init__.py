"""A folder on the path of the Python processes of a session, which Python looks into when such a process starts."""
