"""Sensing: campaigns that query devices, and the channel between devices and aggregator."""
