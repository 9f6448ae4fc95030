// Package redact strikes secrets out of what is stored or shown: the values that are known
// to be secret, and what has the shape of a key, a token, a private key or a URL with a
// password. It imports the standard library only; everybody may import it.
//
// In the place of a secret stands [redacted:kind]. Of JSON the strings alone are changed, so
// it stays what it was; a secret is found however it is escaped there, also in JSON within a
// string of JSON.
//
// Order: a text is read once from the left; secrets that overlap go together. Nothing is remembered between calls, so text that comes in pieces is to be redacted
// by whole lines, and what spans lines (a private key) by the whole text.
// Bounds: time is linear in the text, with at most [lookAhead] bytes more for what begins like
// a secret; there are no regular expressions. Nothing is allocated where nothing is found.
// Loss: short values (under [MinLength] bytes) are not known as secrets: they would be struck
// out of ordinary words. A secret that is a number in JSON, or that no list and no shape
// knows, stays.
package redact
