"""Checkpoints of Gradstone and state dicts of PyTorch in Python, with NumPy and h5py."""
