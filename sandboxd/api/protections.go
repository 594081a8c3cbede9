package api

import "fmt"

// Protections says which mechanism holds each limit. An empty field means that
// nothing does, and Missing then says so in words.
type Protections struct {
	// Isolation is "gvisor", "gvisor, shared by the calls of one trajectory" or "none"
	// (a plain process).
	Isolation string `json:"isolation"`
	// Platform is gVisor's platform ("systrap", "ptrace", "kvm"), else empty.
	Platform string `json:"platform,omitempty"`
	// Memory, CPU, Processes, Disk, Network and Output name the mechanism.
	Memory    string `json:"memory"`
	CPU       string `json:"cpu"`
	Processes string `json:"processes"`
	Disk      string `json:"disk"`
	Network   string `json:"network"`
	Output    string `json:"output"`
	WallTime  string `json:"wall_time"`
	// Tested says that the daemon has tried them on this machine when it started,
	// and found what is claimed here to hold.
	Tested bool `json:"tested"`
	// Missing lists, in words, every protection that is degraded or absent on
	// this machine; empty when all hold.
	Missing []string `json:"missing"`
}

// Health is the body of /healthz and /readyz.
type Health struct {
	// Status is "ok", "starting", "degraded", "tripped" or "stopping".
	Status string `json:"status"`
	// Reason says why the status is not "ok".
	Reason      string      `json:"reason,omitempty"`
	Version     string      `json:"version"`
	Protections Protections `json:"protections"`
	// Images lists the warm images and what stands ready in each.
	Images []ImageHealth `json:"images"`
	// Slots, Reserved, Running and Waiting are the state of admission.
	Slots int `json:"slots"`
	// Reservable is how many of the slots reservations may hold.
	Reservable int `json:"reservable"`
	Reserved   int `json:"reserved"`
	Running    int `json:"running"`
	Waiting    int `json:"waiting"`
	// Kept is how many sandboxes wait for the next call of their trajectory. They hold
	// no slot.
	Kept int `json:"kept,omitempty"`
	// Idle is how many of the reserved slots run nothing; WaitingCalls is how many of
	// those that wait have a program in hand. While one does, Idle is 0.
	Idle         int `json:"idle"`
	WaitingCalls int `json:"waiting_calls"`
}

// ImageHealth is the state of one warm image.
type ImageHealth struct {
	Name   string `json:"name"`
	Ready  int    `json:"ready"`
	Target int    `json:"target"`
	// Error says why the image could not be built; calls then start cold.
	Error string `json:"error,omitempty"`
	// RetryMS is the time until the build is tried again, if it failed.
	RetryMS int64 `json:"retry_ms,omitempty"`
}

// ReserveRequest asks for a reservation. An empty body asks for one without an owner.
type ReserveRequest struct {
	// Owner is Request.Owner.
	Owner string `json:"owner,omitempty"`
	// Key names the reservation among its owner's, at most 200 bytes; empty for
	// none. Two with one key are one: who asks again, because a connection broke
	// or a process came back, takes over what is held, and the stream that held it
	// ends.
	Key string `json:"key,omitempty"`
}

// Validate says what is wrong with a request.
func (r ReserveRequest) Validate() error {
	if len(r.Key) > MaxLabel {
		return fmt.Errorf("key is %d bytes, the limit is %d", len(r.Key), MaxLabel)
	}
	return validOwner(r.Owner)
}

// Reserved is the first line of a reservation's stream. The stream ends when the
// reservation does: the holder closed it, the daemon stopped, or the slot ran nothing
// and was needed: for a program in hand, or for another's reservation.
type Reserved struct {
	Reservation string  `json:"reservation"`
	WaitMS      float64 `json:"wait_ms"`
}

// Failure is the JSON body of every answer that is not 2xx.
type Failure struct {
	// Code is one of "busy", "tripped", "stopping", "bad_request",
	// "unknown_reservation", "unauthorized", "starting".
	Code string `json:"code"`
	// Message says what was wrong and what to do.
	Message string `json:"message"`
	// RetryAfterMS is set for busy, tripped, starting and stopping; the
	// Retry-After header carries the same in whole seconds, rounded up.
	RetryAfterMS int64 `json:"retry_after_ms,omitempty"`
	// Begun says that the program had been given to a sandbox before the call was
	// ended: what of it ran is not known.
	Begun bool `json:"begun,omitempty"`
}

// Failure codes.
const (
	CodeBusy               = "busy"
	CodeTripped            = "tripped"
	CodeStopping           = "stopping"
	CodeStarting           = "starting"
	CodeBadRequest         = "bad_request"
	CodeUnknownReservation = "unknown_reservation"
	CodeUnauthorized       = "unauthorized"
)
