// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package alertmanager

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/bellwether-dev/bellwether/testbed/loopback"
)

// StartReplicas runs n Alertmanagers with one configuration, which tell each other what they notified of, and returns
// when each knows all others and is ready to notify. Each has a folder of its own in opts.Dir. Whoever has alerts posts
// them to all, as Prometheus does. On an error nothing is left running.
//
// A replica waits for those before it, by default 15 s for each (--cluster.peer-timeout), before it notifies of what
// they did not; what is posted meanwhile counts only the next time. A group that resolves meanwhile is notified of as
// firing once more if another replica was quicker, so group_interval must be much longer than the wait. By default it
// takes 10 s until replicas notify of anything (50 times --cluster.gossip-interval).
func StartReplicas(ctx context.Context, n int, opts Options) ([]*Server, error) {
	replicas := make([]*Server, n)
	for i := range replicas {
		own := opts
		own.Dir = filepath.Join(opts.Dir, "replica-"+strconv.Itoa(i))
		var err error
		if replicas[i], err = prepare(own); err != nil {
			return nil, err
		}
	}
	err := loopback.OnFreePorts(ctx, 2*n, func(ports []int) error {
		gossip := make([]string, n)
		for i := range gossip {
			gossip[i] = loopback.Address(ports[n+i])
		}
		for i, s := range replicas {
			s.address, s.gossip = loopback.Address(ports[i]), gossip[i]
			s.peers = slices.Delete(slices.Clone(gossip), i, i+1)
		}
		return launchAll(ctx, replicas)
	})
	if err != nil {
		return nil, fmt.Errorf("start replicas of Alertmanager: %w", err)
	}
	return replicas, nil
}

// launchAll launches replicas until each knows all others; or none.
func launchAll(ctx context.Context, replicas []*Server) error {
	launch := func() error {
		for _, s := range replicas {
			if err := s.launch(ctx); err != nil {
				return err
			}
		}
		for _, s := range replicas {
			if err := s.waitForPeers(ctx, len(replicas)); err != nil {
				return err
			}
		}
		return nil
	}
	err := launch()
	if err == nil {
		return nil
	}
	for _, s := range replicas {
		if s.process != nil {
			s.Kill()
		}
	}
	return err
}

// waitForPeers returns when the replica is in a cluster of n, itself included, and notifies.
func (s *Server) waitForPeers(ctx context.Context, n int) error {
	return s.process.WaitReady(ctx, readyLimit, func(ctx context.Context) error {
		answer, err := s.call(ctx, http.MethodGet, "/api/v2/status", nil)
		if err != nil {
			return err
		}
		var status struct {
			Cluster struct {
				Status string            `json:"status"`
				Peers  []json.RawMessage `json:"peers"`
			} `json:"cluster"`
		}
		if err := json.Unmarshal(answer, &status); err != nil {
			return fmt.Errorf("decode status: %w", err)
		}
		if status.Cluster.Status != "ready" || len(status.Cluster.Peers) != n {
			return fmt.Errorf("replica is %s and knows %d of %d", status.Cluster.Status, len(status.Cluster.Peers), n)
		}
		return nil
	})
}
