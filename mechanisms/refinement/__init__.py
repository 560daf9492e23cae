"""What may be done to an unbiased estimate afterwards, at the price of bias; and combining several queries."""
