package transcript

import "acescope/engine/price"

// Tokens counts tokens by how they are priced.
type Tokens = price.Tokens

func tokensOf(usage []byte) (t Tokens) {
	var writes int64
	members(usage, func(key, v []byte) bool {
		switch string(key) {
		case "input_tokens":
			t.Input = count(v)
		case "output_tokens":
			t.Output = count(v)
		case "cache_read_input_tokens":
			t.CacheRead = count(v)
		case "cache_creation_input_tokens":
			writes = count(v)
		case "cache_creation":
			members(v, func(key, v []byte) bool {
				switch string(key) {
				case "ephemeral_5m_input_tokens":
					t.CacheWrite5m = count(v)
				case "ephemeral_1h_input_tokens":
					t.CacheWrite1h = count(v)
				}
				return true
			})
		}
		return true
	})
	// Older versions tell the sum only; writes were for five minutes then.
	if rest := writes - t.CacheWrite(); rest > 0 {
		t.CacheWrite5m += rest
	}
	return t
}
