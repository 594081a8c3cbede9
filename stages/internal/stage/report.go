package stage

import (
	"context"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/stages/internal/kafka"
	"github.com/sluice-rl/sluice/topology"
)

// reportStatus writes what the process says of itself to stage-status until the returned
// function is called, which writes the last of it. Nothing else waits for it.
func reportStatus(name string, env *Env) (stop func(), err error) {
	cluster := env.Kafka
	// Its client is none of the parts of the work: they say what is wrong with the brokers.
	cluster.Ready, cluster.Begun, cluster.Metrics, cluster.Log, cluster.Status = nil, nil, nil, nil, nil
	ctx, cancel := context.WithCancel(context.Background())
	producer, err := kafka.NewProducer(ctx, cluster, name)
	if err != nil {
		cancel()
		return nil, err
	}
	write := func(ctx context.Context, s *sluicev1.StageStatus) error {
		return producer.Produce(ctx, kafka.Output{Topic: topology.StatusTopic, Body: s})
	}
	failed := func(err error) {
		if err != nil {
			env.Log.Warn("what this process says of itself cannot be written to stage-status; the work goes on", "error", err)
			return
		}
		env.Log.Info("stage-status is written again")
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer producer.Close()
		env.Status.Report(ctx, name, env.Kafka.Instance, write, failed)
	}()
	return func() {
		cancel()
		<-done
	}, nil
}
