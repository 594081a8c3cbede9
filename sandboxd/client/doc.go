// Package client talks to sandboxd over its unix socket (or TCP with a token).
//
// Reads and writes: HTTP/JSON to one daemon. Promises: a call whose context
// ends is ended in the daemon too, and its sandbox destroyed; a process that
// dies takes its calls and reservations with it, since both live no longer
// than the connection that carries them.
//
// What a caller must do:
//
//  1. Make one Client with New and share it; it is safe for concurrent use.
//  2. For a single call: Run(ctx, Request). It queues in the daemon for a slot
//     and returns a Result. An error means that nothing is known about the
//     program; a program that failed is a Result, not an error. Who has a
//     program in hand comes before all reservations. Name the trajectory that
//     the program belongs to, if there is one: a daemon with
//     --isolation=trajectory then runs its calls in one sandbox.
//  3. For a worker that must not take work it cannot do: Reserve(ctx) first.
//     It waits in the daemon until a slot is free, then the caller polls for a
//     record, and Reservation.Run runs it at once. One reservation serves one
//     call at a time, any number of them after another. Release it when done.
//     Watch Reservation.Lost: it is closed if the daemon goes away, and if
//     nothing runs in the slot while somebody else needs it. Then stop
//     polling, wait a little (longer each time that it was lost in vain), and
//     reserve again. With a record already in hand, Run it without a
//     reservation.
//  4. Treat errors by type: errors.As to *BusyError (wait RetryAfter, try
//     again: no slot, breaker open, starting or stopping), errors.Is
//     ErrReservationLost (Run without it), errors.As *EndUnknownError (the
//     program may have run: say so in what you make of its repeat),
//     errors.As *RequestError (the request
//     itself is wrong; trying again cannot help), anything else: the daemon
//     could not be reached, and the program has not begun.
//  5. Never show a Result whose Outcome is api.InfraError to a policy.
//
// Limits: the program's time runs from the moment it is handed to a sandbox;
// waiting for a slot (Result.QueueWaitMS) and starting one (Result.StartMS)
// never count against it.
package client
