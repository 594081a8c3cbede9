// Package ask asks ClickHouse on behalf of the pages: named questions, which are files
// of queries/, and statements that people write.
//
// Every statement has limits of time, memory, threads and rows, and waits for others of
// the pages, so that looking costs the engine little. Values never become SQL: they are
// ClickHouse's own parameters, {name:Type}, whose defaults stand in the file's comment.
// What people write runs only for a user that can do no more than read our database
// within limits (Own says whether it is one).
//
// An answer is columns and rows of plain JSON values. Whole numbers that JavaScript would
// round are strings, what is no number is null, and bytes that are no UTF-8 are replaced.
package ask
