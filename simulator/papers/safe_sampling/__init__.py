"""LQS: N. Li, W. Qardaji and D. Su, On Sampling, Anonymization, and Differential Privacy."""
