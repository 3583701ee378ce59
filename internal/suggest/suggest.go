// Package suggest finds the name a person or a model most likely meant.
package suggest

import "strings"

// Nearest returns the candidate closest to word. A candidate that differs only
// in case wins; otherwise the distance counts inserted, deleted, replaced and
// swapped letters, at most a third of the word and at least one. Of equally
// close candidates the first wins. It reports false when nothing is close, so
// nonsense gets no guess.
func Nearest(word string, candidates []string) (string, bool) {
	w := []rune(strings.ToLower(word))
	limit := min(max(1, len(w)/3), len(w)-1)
	best, bestDistance := "", limit+1
	for _, c := range candidates {
		if strings.EqualFold(word, c) && word != "" {
			return c, true
		}
		r := []rune(strings.ToLower(c))
		if len(r)-len(w) > limit || len(w)-len(r) > limit {
			continue
		}
		if d := distance(w, r); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best, bestDistance <= limit
}

// distance is the Damerau–Levenshtein distance in its optimal string alignment
// form: no part of the text is edited twice.
func distance(a, b []rune) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
