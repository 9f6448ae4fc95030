//go:build !linux

package memory

func releasePages() {}
