package redact

import "strings"

// Environ are the secrets among environment variables (NAME=value), by their names. Values
// of fewer than MinLength bytes are left out, and those that are paths of files.
func Environ(environ []string) []Secret {
	var list []Secret
	for _, v := range environ {
		name, value, ok := strings.Cut(v, "=")
		if ok && len(value) >= MinLength && SecretName(name) && !isPath(name, value) {
			list = append(list, Secret{Kind: name, Value: value})
		}
	}
	return list
}

// SecretName tells whether what a variable of the name holds is a secret.
func SecretName(name string) bool {
	words := strings.FieldsFunc(strings.ToUpper(name), func(c rune) bool { return c == '_' || c == '-' || c == '.' })
	for i, w := range words {
		switch w {
		case "PASS", "PAT", "DSN":
			return true
		case "PWD":
			return i > 0 // alone it is the directory
		}
		for _, end := range []string{"KEY", "TOKEN", "SECRET", "SECRETS", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "CREDENTIALS", "COOKIE"} {
			if strings.HasSuffix(w, end) {
				return true
			}
		}
	}
	return false
}

// isPath tells whether a value only says where a secret is.
func isPath(name, value string) bool {
	if !strings.HasPrefix(value, "/") && !strings.HasPrefix(value, "~/") {
		return false
	}
	upper := strings.ToUpper(name)
	return strings.Contains(upper, "CREDENTIALS") || strings.HasSuffix(upper, "FILE") || strings.HasSuffix(upper, "PATH") ||
		strings.HasSuffix(upper, "DIR")
}
