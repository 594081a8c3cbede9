-- Attempts at the turn's call before the one that is recorded, of which nobody knows how
-- they ended: the program may have run then too. delivery is which attempt that one was.
ALTER TABLE turns ADD COLUMN IF NOT EXISTS unknown_runs UInt32;
