"""Random transcripts through this library and through Apache Beam's trigger driver."""
