package sandboxtest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-rl/sluice/sandboxd/api"
	"github.com/sluice-rl/sluice/sandboxd/client"
	"github.com/sluice-rl/sluice/sandboxd/sandboxtest"
)

func slow(ctx context.Context, code string) api.Result {
	d, _ := time.ParseDuration(code)
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	return api.Result{Outcome: api.OK}
}

func TestItAdmitsEvictsAndDiesAsSandboxdDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := sandboxtest.New(sandboxtest.Config{Slots: 1, Reservable: 1, Program: slow})
		c := d.Client("a")
		defer c.Close()
		var unknown *client.EndUnknownError
		if _, err := c.Run(t.Context(), client.Request{Code: "1s"}); err == nil || errors.As(err, &unknown) {
			t.Errorf("before it started: %v, want that nothing has begun", err)
		}
		d.Start()
		defer d.Kill()
		idle, err := c.Reserve(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if r, err := c.Run(t.Context(), client.Request{Code: "1s"}); err != nil || r.Outcome != api.OK || r.WallMS != 1000 {
			t.Errorf("a call beside an idle reservation: %+v, %v", r, err)
		}
		<-idle.Lost()
		if _, err := idle.Run(t.Context(), client.Request{Code: "1s"}); !errors.Is(err, client.ErrReservationLost) {
			t.Errorf("in a place that was taken away: %v", err)
		}
		if r, err := c.Run(t.Context(), client.Request{Code: "1h", TimeoutMS: 2000}); err != nil || r.Outcome != api.Timeout {
			t.Errorf("past its limit: %+v, %v", r, err)
		}
		cut := make(chan error)
		go func() {
			_, err := c.Run(t.Context(), client.Request{Code: "10s"})
			cut <- err
		}()
		time.Sleep(time.Second)
		d.Kill()
		if err := <-cut; !errors.As(err, &unknown) {
			t.Errorf("cut off in mid-run: %v, want that its end is unknown", err)
		}
		d.Start()
		if r, err := c.Run(t.Context(), client.Request{Code: "1s"}); err != nil || r.Outcome != api.OK {
			t.Errorf("after it came back: %+v, %v", r, err)
		}
	})
}
