package image

import "testing"

func TestChoose(t *testing.T) {
	tests := []struct{ name, code, want string }{
		{"nothing", "print(1)", Bare},
		{"empty", "", Bare},
		{"standard library", "import math, itertools", Bare},
		{"numpy", "import numpy as np", Numpy},
		{"numpy among others", "import math, numpy", Numpy},
		{"from numpy", "x = 1\n  from numpy.linalg import inv", Numpy},
		{"sympy", "from sympy import *", Sympy},
		{"both", "import numpy\nimport sympy", Sympy},
		{"behind a semicolon", "import math; import sympy", Sympy},
		{"only mentioned", "print('sympy')", Bare},
		{"only in a comment", "import math # sympy", Bare},
		{"a longer name", "import sympyx", Bare},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Choose(tt.code); got != tt.want {
				t.Errorf("Choose(%q) = %s, want %s", tt.code, got, tt.want)
			}
		})
	}
}
