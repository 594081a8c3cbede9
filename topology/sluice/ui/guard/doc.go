// Package guard lets the requests of this program's own pages through, and no others.
//
//   - Host: only the names that the pages are opened under. A foreign name that was made
//     to point here (DNS rebinding) is refused.
//   - Origin and Sec-Fetch-Site: a request that another site's page makes is refused.
//   - Token: where there is one, every request needs it: as the cookie that signing in
//     gives, or as "Authorization: Bearer TOKEN". The cookie is not the token.
//   - Answers say what their page may do, which is to load from here and nowhere else,
//     and run the scripts that are files of this program. Text cannot become a script or
//     a tag, since trusted types are required and none exist.
package guard
