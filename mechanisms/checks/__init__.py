"""What a mechanism must satisfy, one kind of promise a file; `mechanisms.conformance` runs them all."""
