//go:build ignore

// Command seccomp writes the Go file by which runsc gets its own seccomp filters
// ready-made, instead of compiling them at each start of a sandbox. gVisor's build
// does so by Bazel; topology/tools/install.sh runs this in gVisor's module.
//
// Only the filters that sandboxd's sandboxes use are kept: any other configuration
// of runsc goes on compiling its own.
package main

import (
	"fmt"
	"os"
	"strings"

	"gvisor.dev/gvisor/runsc/boot/filter/config"
)

// kept are the parts of a filter's name that sandboxd's have.
var kept = []string{"HostNetwork=false", "ProfileEnable=false", "NVProxy=false", "TPUProxy=false", "RDMAProxy=false", "CgoEnabled=false", "PluginNetwork=false"}

func main() {
	programs, err := config.PrecompiledPrograms()
	if err != nil {
		fmt.Fprintln(os.Stderr, "seccomp:", err)
		os.Exit(1)
	}
	fmt.Print("package filter\n\nimport \"gvisor.dev/gvisor/pkg/seccomp/precompiledseccomp\"\n\n",
		"func registerReady(programs map[string]precompiledseccomp.Program) {\n")
	for _, p := range programs {
		if wanted(p.Name) {
			fmt.Println(p.Registration("\t", "precompiledseccomp", "programs"))
		}
	}
	fmt.Println("}")
}

func wanted(name string) bool {
	for _, part := range kept {
		if !strings.Contains(name, part) {
			return false
		}
	}
	return true
}
