"""WHEN in processing time: the trigger language and its evaluation."""
