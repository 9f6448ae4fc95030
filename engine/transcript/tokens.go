package transcript

// Tokens counts tokens by how they are priced. The prompt of a request is its input, its
// cache reads and its cache writes.
type Tokens struct {
	Input        int64 `json:"input_tokens"`
	Output       int64 `json:"output_tokens"`
	CacheRead    int64 `json:"cache_read_tokens"`
	CacheWrite5m int64 `json:"cache_write_5m_tokens"`
	CacheWrite1h int64 `json:"cache_write_1h_tokens"`
}

// CacheWrite is all tokens that were written to a cache.
func (t Tokens) CacheWrite() int64 { return t.CacheWrite5m + t.CacheWrite1h }

// Prompt is all tokens that went to the model.
func (t Tokens) Prompt() int64 { return t.Input + t.CacheRead + t.CacheWrite() }

// Total is the tokens of prompts and answers.
func (t Tokens) Total() int64 { return t.Prompt() + t.Output }

// Add is the sum of two.
func (t Tokens) Add(u Tokens) Tokens {
	return Tokens{t.Input + u.Input, t.Output + u.Output, t.CacheRead + u.CacheRead, t.CacheWrite5m + u.CacheWrite5m, t.CacheWrite1h + u.CacheWrite1h}
}

// Sub is the difference of two.
func (t Tokens) Sub(u Tokens) Tokens {
	return Tokens{t.Input - u.Input, t.Output - u.Output, t.CacheRead - u.CacheRead, t.CacheWrite5m - u.CacheWrite5m, t.CacheWrite1h - u.CacheWrite1h}
}

// max is the larger of two, count by count: the parts of a streamed message repeat what
// is already spent, and only grow.
func (t Tokens) max(u Tokens) Tokens {
	return Tokens{max(t.Input, u.Input), max(t.Output, u.Output), max(t.CacheRead, u.CacheRead), max(t.CacheWrite5m, u.CacheWrite5m), max(t.CacheWrite1h, u.CacheWrite1h)}
}

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
