package up

import "strings"

// environ is the environment of the processes: that of `sluice up` without the variables
// that give flags. One of them would otherwise give the same flag, a port for instance,
// to every process that has it. Secrets stay, since files and variables are all that can
// hold them; what runs model-written code gets none.
func environ(own []string, secrets bool) []string {
	kept := make([]string, 0, len(own))
	for _, entry := range own {
		name, _, _ := strings.Cut(entry, "=")
		ours := strings.HasPrefix(name, "SLUICE_")
		if !ours || secrets && isSecret(strings.TrimSuffix(name, "_FILE")) {
			kept = append(kept, entry)
		}
	}
	return kept
}

func isSecret(name string) bool {
	for _, end := range []string{"_PASSWORD", "_SECRET", "_API_KEY", "_TOKEN"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return false
}
