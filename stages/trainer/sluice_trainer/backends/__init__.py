"""What trains: modules to be imported by name, because each needs its own library."""
