"""Reading and writing files: decompression within limits, XML without entities, strict tables, atomic writes."""
