package command

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var sources = []struct{ name, data, want, refused string }{
	{"plain", "print(1)\n", "print(1)\n", ""},
	{"UTF-8", "print('é')", "print('é')", ""},
	{"a byte order mark", "\xef\xbb\xbfprint('é')", "print('é')", ""},
	{"a byte order mark and its declaration", "\xef\xbb\xbf# coding: utf-8\nprint('é')", "# coding: utf-8\nprint('é')", ""},
	{"a byte order mark and another declaration", "\xef\xbb\xbf# coding: latin-1\nprint(1)", "", "byte order mark"},
	{"Latin-1", "# -*- coding: latin-1 -*-\nprint('\xe9')", "# -*- coding: latin-1 -*-\nprint('é')", ""},
	{"Latin-1 in the second line", "#!/usr/bin/python3\n# coding=iso-8859-1\nprint('\xe9\x80')", "#!/usr/bin/python3\n# coding=iso-8859-1\nprint('é\u0080')", ""},
	{"as editors write it", "# vim: set fileencoding=cp1252 :\nprint('\x80')", "# vim: set fileencoding=cp1252 :\nprint('€')", ""},
	{"KOI8-R", "# coding: koi8-r\nprint('\xc1')", "# coding: koi8-r\nprint('а')", ""},
	{"Shift JIS", "# coding: shift_jis\nprint('\x82\xa0')", "# coding: shift_jis\nprint('あ')", ""},
	{"after a form feed", "\f# coding: latin-1\nprint('\xe9')", "\f# coding: latin-1\nprint('é')", ""},
	{"with the line ends of DOS", "#\r\n# coding: latin-1\r\nprint('\xe9')", "#\r\n# coding: latin-1\r\nprint('é')", ""},
	{"a declaration too late", "\n\n# coding: latin-1\nprint('\xe9')", "", "no encoding declared"},
	{"a declaration after code", "x = 1\n# coding: latin-1\nprint('\xe9')", "", "no encoding declared"},
	{"a declaration in a string", "'coding: latin-1'\nprint('\xe9')", "", "no encoding declared"},
	{"neither UTF-8 nor declared", "x = 1\nprint('\xff')", "", `'\xff' in line 2`},
	{"declared and not UTF-8", "# coding: utf-8\nprint('\xff')", "", "0xff"},
	{"an encoding that nobody knows", "# coding: klingon\nprint(1)", "", "unknown encoding: klingon"},
	{"ASCII that is none", "# coding: ascii\nprint('\xe9')", "", "ascii"},
}

func TestDecodeSource(t *testing.T) {
	for _, tt := range sources {
		t.Run(tt.name, func(t *testing.T) {
			got, err := decodeSource([]byte(tt.data))
			if tt.refused == "" && (err != nil || got != tt.want) {
				t.Errorf("got %q, %v; want %q", got, err, tt.want)
			}
			if tt.refused != "" && (err == nil || !strings.Contains(err.Error(), tt.refused)) {
				t.Errorf("got %q, %v; want a refusal that says %q", got, err, tt.refused)
			}
		})
	}
}

// Python itself takes and refuses the same files.
func TestPythonReadsTheSame(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil && os.Getenv("CI") != "" {
		t.Fatalf("CI is set, so this test must run: %v", err)
	}
	if err != nil {
		t.Skip("needs python3")
	}
	for _, tt := range sources {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "p.py")
			if err := os.WriteFile(file, []byte(tt.data), 0o600); err != nil {
				t.Fatal(err)
			}
			out, err := exec.Command(python, "-X", "utf8", file).CombinedOutput()
			if (err == nil) != (tt.refused == "") {
				t.Errorf("python3 says %v: %s", err, out)
			}
			if _, err := readProgram(file, nil); (err == nil) != (tt.refused == "") || err != nil && !errors.Is(err, ErrSource) {
				t.Errorf("we say %v", err)
			}
		})
	}
}
