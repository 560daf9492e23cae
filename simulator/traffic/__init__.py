"""Traffic: the vehicles' trips and routes, the engines that move vehicles or replay recordings, and their positions."""
