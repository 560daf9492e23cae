"""Demand, routes and the engines that move vehicles."""
