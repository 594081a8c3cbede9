package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// prepareShareGroup waits for the brokers, makes sure that they have share groups
// and sets the group up, which must be done before its first member comes: a share
// group starts at the end of its topics unless told otherwise.
func prepareShareGroup(ctx context.Context, cl *kgo.Client, st *state, group string, cfg ShareConfig, log *slog.Logger) error {
	settings := []struct {
		name, value string
		required    bool
	}{
		{"share.auto.offset.reset", "earliest", true},
		{"share.record.lock.duration.ms", strconv.FormatInt(cfg.Lock.Milliseconds(), 10), false},
		// Above our own limit, or the brokers drop a record without a word.
		{"share.delivery.count.limit", "10", false},
		{"share.max.size", "1000", false},
	}
	var wait backoff
	for {
		err := checkShareGroups(ctx, cl)
		for _, s := range settings {
			if err != nil {
				break
			}
			err = setGroupConfig(ctx, cl, group, s.name, s.value)
			if refused(err) && !s.required {
				log.Info("brokers keep their own setting of a share group", "group", group, "setting", s.name, "wanted", s.value, "error", err)
				err = nil
			}
		}
		switch {
		case err == nil:
			st.setWork(nil)
			return nil
		case errors.Is(err, ErrUnsupported):
			return err
		case refused(err):
			return fmt.Errorf("%w: %w", ErrUnsupported, err)
		}
		st.setWork(fmt.Errorf("share group %s is not set up yet: %w", group, err))
		log.Debug("share group is not set up yet", "group", group, "error", err)
		if !wait.wait(ctx, nil) {
			return nil
		}
	}
}

// Keys of requests that brokers with share groups and lock renewal answer.
const (
	keyShareAcknowledge = 79
	renewVersion        = 2
)

func checkShareGroups(ctx context.Context, cl *kgo.Client) error {
	resp, err := kmsg.NewPtrApiVersionsRequest().RequestWith(ctx, cl)
	if err != nil {
		return err
	}
	for _, k := range resp.ApiKeys {
		if k.ApiKey == keyShareAcknowledge && k.MaxVersion >= renewVersion {
			return nil
		}
	}
	return fmt.Errorf("%w: no share groups with lock renewal (Kafka 4.2 and later have them): use the classic intake", ErrUnsupported)
}

func setGroupConfig(ctx context.Context, cl *kgo.Client, group, name, value string) error {
	config := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	config.Name, config.Value, config.Op = name, &value, kmsg.IncrementalAlterConfigOpSet
	resource := kmsg.NewIncrementalAlterConfigsRequestResource()
	resource.ResourceType, resource.ResourceName = kmsg.ConfigResourceTypeGroupConfig, group
	resource.Configs = append(resource.Configs, config)
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	req.Resources = append(req.Resources, resource)
	resp, err := req.RequestWith(ctx, cl)
	if err != nil {
		return err
	}
	for _, r := range resp.Resources {
		if err := kerr.ErrorForCode(r.ErrorCode); err != nil {
			return fmt.Errorf("set %s=%s of group %s: %w", name, value, group, err)
		}
	}
	return nil
}

// refused tells an answer from the absence of one.
func refused(err error) bool {
	var k *kerr.Error
	return errors.As(err, &k) && !k.Retriable
}
