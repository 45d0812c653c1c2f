"""What people look at: tables, plots, one HTML page."""
