//go:build !unix

package host

const openFlags = 0
