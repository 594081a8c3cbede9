-- Tables, views and their columns, for whoever writes a statement.
SELECT table, groupArray(name) AS columns, groupArray(type) AS types
FROM system.columns
WHERE database = currentDatabase()
GROUP BY table
ORDER BY table;
