"""The founding papers' tables and figures, computed anew and set beside what was published."""
