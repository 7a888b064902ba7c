"""What people see of a cluster, as text and pages: each from a Picture. Pure."""
