package terminal

import (
	"strings"
	"unicode/utf8"
)

// Table lays out rows under a head in columns as wide as their widest cell. Cells that
// hold a number stand to the right. It escapes every cell.
func Table(head []string, rows [][]string) string {
	width := make([]int, len(head))
	right := make([]bool, len(head))
	escaped := make([][]string, 0, len(rows)+1)
	for _, row := range append([][]string{head}, rows...) {
		cells := make([]string, len(head))
		for i := range head {
			if i < len(row) {
				cells[i] = Escape(row[i])
			}
			width[i] = max(width[i], utf8.RuneCountInString(cells[i]))
		}
		escaped = append(escaped, cells)
	}
	for i := range head {
		right[i] = len(rows) > 0
		for _, cells := range escaped[1:] {
			right[i] = right[i] && numeric(cells[i])
		}
	}
	var b strings.Builder
	for _, cells := range escaped {
		line := ""
		for i, cell := range cells {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell))
			if i > 0 {
				line += "  "
			}
			if right[i] {
				line += pad + cell
			} else {
				line += cell + pad
			}
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

// numeric: a number, or the signs that stand for a missing or bounded one.
func numeric(cell string) bool {
	return strings.Trim(cell, "0123456789.,+-–−≤%s/ ") == ""
}
