// Package codec reads and writes payloads through a codec server: encrypted, compressed or
// kept elsewhere, they are decoded once, where they come in, and encoded where they go
// out. Everything behind that door (fold, replay, comparison, screens) sees plain payloads
// and knows no codec; nothing that draws ever waits for a server.
//
// Who looks goes on when a payload cannot be decoded: it stays as it is, with the reason
// in its metadata (history.MetaCodec). Who works must not: a worker waits, and what would
// be sent is never sent plain.
//
// Bounds: a request carries at most MaxBatch payloads of MaxBatchBytes in all and takes at
// most the time-out; a server that fails as a whole is left alone for a while, which grows
// up to MaxBackoff; decoded payloads are kept up to CacheBytes, the least used go first.
// The secrets of a [Config] are in no error, status or name.
//
// It may import engine/history and Temporal's API and SDK.
package codec
