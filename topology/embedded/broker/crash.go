package broker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// servingName is the file that is there from before a broker serves the directory
// until after its clean stop: found at a start, it tells of a crash.
const servingName = "serving"

// recoverWithin bounds the work after a crash; it takes milliseconds per
// transactional id.
const recoverWithin = time.Minute

// crashed says whether the last broker on the directory ended without a clean stop.
func crashed(dir string) (bool, error) {
	_, err := os.Stat(filepath.Join(dir, servingName))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func setServing(dir string) error {
	return os.WriteFile(filepath.Join(dir, servingName), nil, 0o600)
}

func unsetServing(dir string) error {
	return os.Remove(filepath.Join(dir, servingName))
}

// recoverFromCrash brings the data directory into the state that a clean stop leaves.
// What kfake writes as it goes are records, committed offsets and producer ids; what
// it only writes when it stops is repaired here, on a port that no client knows:
//
//   - Transactions that were open are aborted for good. kfake counts them as aborted
//     but writes no marker, and raises the epoch of their producer by one; so the
//     producer's retry of its commit is taken for a repetition of one that succeeded,
//     its records are lost without an error, and a reader that finds no marker drops
//     the producer's next committed records too. See fence.
//   - Share groups get back their settings and where they had got to, as last kept by
//     keepShareGroups. Without, they would begin at the end of their topics.
func recoverFromCrash(cfg Config, opts []kfake.Opt, log *slog.Logger) error {
	began := time.Now()
	cluster, err := kfake.NewCluster(append(opts, kfake.Ports(0))...)
	if err != nil {
		return err
	}
	// Its clean stop writes what was repaired.
	defer cluster.Close()
	cl, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...))
	if err != nil {
		return err
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), recoverWithin)
	defer cancel()
	producers, err := fence(ctx, cl)
	if err != nil {
		return fmt.Errorf("abort the transactions that were open: %w", err)
	}
	groups, err := readShareGroups(cfg.DataDir)
	if err != nil {
		return err
	}
	if err := groups.restore(ctx, cluster, kadm.NewClient(cl)); err != nil {
		return fmt.Errorf("restore share groups: %w", err)
	}
	log.Warn("the last broker on this directory did not stop cleanly: its open transactions are aborted and its share groups restored",
		"transactional_producers", producers, "share_groups", len(groups), "took", time.Since(began).Round(time.Millisecond))
	return nil
}

// fence ends whatever each transactional producer had open and shuts the producer of
// before the crash out, so that it learns that its transaction is gone. It returns how
// many producers there are.
func fence(ctx context.Context, cl *kgo.Client) (int, error) {
	adm := kadm.NewClient(cl)
	ids, err := adm.ListTransactions(ctx, nil, nil)
	if err != nil {
		return 0, err
	}
	if len(ids) == 0 {
		return 0, nil
	}
	topics, err := adm.ListTopics(ctx)
	if err != nil {
		return 0, err
	}
	everywhere := topics.TopicsSet()
	for _, id := range ids.TransactionalIDs() {
		var pid int64
		var epoch int16
		// Twice: an epoch that is one ahead looks to the producer's retry like its
		// own commit.
		for range 2 {
			if pid, epoch, err = initProducer(ctx, cl, id); err != nil {
				return 0, fmt.Errorf("transactional id %q: %w", id, err)
			}
		}
		// Which partitions lack a marker cannot be asked for; one too many is harmless.
		written, err := adm.WriteTxnMarkers(ctx, kadm.TxnMarkers{ProducerID: pid, ProducerEpoch: epoch, Topics: everywhere})
		if err != nil {
			return 0, fmt.Errorf("transactional id %q: %w", id, err)
		}
		written.EachPartition(func(p kadm.TxnMarkersPartitionResponse) {
			if p.Err != nil {
				err = errors.Join(err, fmt.Errorf("transactional id %q: marker in %s-%d: %w", id, p.Topic, p.Partition, p.Err))
			}
		})
		if err != nil {
			return 0, err
		}
	}
	return len(ids), nil
}

func initProducer(ctx context.Context, cl *kgo.Client, transactionalID string) (int64, int16, error) {
	req := kmsg.NewPtrInitProducerIDRequest()
	req.TransactionalID = &transactionalID
	req.TransactionTimeoutMillis = 60_000
	resp, err := req.RequestWith(ctx, cl)
	if err != nil {
		return 0, 0, err
	}
	return resp.ProducerID, resp.ProducerEpoch, kerr.ErrorForCode(resp.ErrorCode)
}
