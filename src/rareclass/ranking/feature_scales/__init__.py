"""Scales of features inside the kernel, learned by the cross-validated loss; zero drops one."""
