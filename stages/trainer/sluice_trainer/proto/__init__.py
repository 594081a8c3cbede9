"""Generated from schemas/sluice/v1 by generate.sh: do not edit the _pb2 files."""
