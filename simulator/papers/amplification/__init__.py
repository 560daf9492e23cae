"""HDK: J. Hu, J. Drechsler and H. Kim, Accuracy Gains from Privacy Amplification Through Sampling."""
