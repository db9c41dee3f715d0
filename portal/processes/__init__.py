"""Child processes: started with limits in a group of their own, and ended for certain."""
