package api_test

import (
	"encoding/json"
	"fmt"

	"github.com/sluice-rl/sluice/sandboxd/api"
)

// A result as the daemon sends it: the streams' bytes come back exactly, and a
// client switches on the outcome.
func ExampleResult() {
	const body = `{"outcome":"error","exit_code":1,"exception":"KeyError","stdout":"6\ufffd","stdout_base64":"Nv8=","stdout_bytes":2,
		"stderr":"Traceback …\nKeyError: 'x'\n","stderr_bytes":26}`
	var r api.Result
	if err := json.Unmarshal([]byte(body), &r); err != nil {
		fmt.Println(err)
		return
	}
	switch r.Outcome {
	case api.OK:
		fmt.Println("it printed", r.Stdout.Text())
	case api.InfraError:
		fmt.Println("the sandbox failed, try again:", r.Message)
	default:
		fmt.Printf("%s %s, exit code %d, wrote %q\n", r.Outcome, r.Exception, r.ExitCode, r.Stdout.Kept)
	}
	// Output: error KeyError, exit code 1, wrote "6\xff"
}
