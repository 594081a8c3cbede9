package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/sluice-rl/sluice/sandboxd/api"
	"github.com/sluice-rl/sluice/sandboxd/client"
)

// fakeDaemon stands in for sandboxd: it "runs" every program to the output 42.
func fakeDaemon() *httptest.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/run", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(api.Result{Outcome: api.OK, Stdout: api.Stream{Kept: []byte("42\n"), Total: 3}})
	})
	mux.HandleFunc("POST /v1/reserve", func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(api.Reserved{Reservation: "res-1"})
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	return httptest.NewServer(mux)
}

// One program, which queues in the daemon for a slot.
func ExampleClient_Run() {
	daemon := fakeDaemon()
	defer daemon.Close()
	c, err := client.New(client.Config{Address: daemon.URL}) // or unix:///var/lib/sandboxd/sandboxd.sock
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	r, err := c.Run(context.Background(), client.Request{Code: "print(6*7)", TimeoutMS: 5000})
	var busy *client.BusyError
	switch {
	case errors.As(err, &busy):
		time.Sleep(busy.RetryAfter) // and try again
	case err != nil:
		fmt.Println("nothing is known about the program:", err)
	default:
		fmt.Print(r.Outcome, " ", r.Stdout.Text())
	}
	// Output: ok 42
}

// A worker takes a slot before it takes work, and runs the work in it at once.
func ExampleClient_Reserve() {
	daemon := fakeDaemon()
	defer daemon.Close()
	c, err := client.New(client.Config{Address: daemon.URL})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	slot, err := c.Reserve(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer slot.Release()
	for _, code := range []string{"print(6*7)", "print(7*6)"} {
		r, err := slot.Run(context.Background(), client.Request{Code: code})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Print(r.Stdout.Text())
	}
	// Output:
	// 42
	// 42
}
