"""The change of a running flow: what of its state a changed flow keeps."""
