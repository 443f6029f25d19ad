"""What episodes tell of an agent: which advisor drives it, whose values hold, where it is stuck, when most is at
stake."""
