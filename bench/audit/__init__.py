"""The program that fits and judges the weights of the injection classifier."""
