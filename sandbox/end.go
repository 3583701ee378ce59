package sandbox

import "strings"

// End gives back the processes of a session that will not come back. A command
// that still runs in it ends first; End does not wait.
func (s *Sandbox) End(session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, ses := range s.sessions {
		if strings.HasPrefix(key, session+"\x00") {
			s.retire(ses)
		}
	}
}
