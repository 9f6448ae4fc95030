package system

import "time"

// CodecHealth names the row of the codec server among the sources' states.
const CodecHealth = "codec server"

// ProbeEvery is how often a codec server that failed is thought of; it decides itself
// when it is asked again.
const ProbeEvery = 500 * time.Millisecond
