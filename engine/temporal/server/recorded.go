package server

// RecordedVersion returns the version of acescope that hosted a data directory last, or "". The next
// host records its own version.
func RecordedVersion(dir string) string {
	f, err := readFormat(dir)
	if err != nil {
		return ""
	}
	return f.Acescope
}
