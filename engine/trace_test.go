package engine_test

import "time"

func (s *estate) mark(what string) { s.t.Logf("%s %s", time.Now().Format("05.000"), what) }
