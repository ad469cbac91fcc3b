// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package e2e tests the whole of Bellwether on a fleet of real clusters: hub
// and agents run from the chart, with exactly its permissions.
package e2e

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/testbed/platform"
)

// shared is the platform that all tests of this package use, one after another.
// Each uses a ManagedOperator and a namespace of its own.
var shared *platform.Platform

// spare is a cluster that runs but has not joined the fleet.
var spare = platform.Member{Name: "late", Labels: map[string]string{"ring": "prod", "region": "ap"}}

// interrupted is the exit status of a program that Ctrl-C ended.
const interrupted = 130

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) (code int) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	p, err := start(ctx)
	if p != nil {
		defer func() {
			if err := p.Stop(context.Background(), code != 0); err != nil {
				fmt.Fprintln(os.Stderr, "stop platform:", err)
			}
			if code != 0 {
				fmt.Fprintln(os.Stderr, "logs stay for a day in", p.Fleet.Dir())
			}
		}()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "start platform:", err)
		return 1
	}
	shared = p
	// Tests do not look at signals, so one ends them from here.
	uninterrupted := context.AfterFunc(ctx, func() {
		_ = p.Stop(context.Background(), false)
		os.Exit(interrupted)
	})
	defer uninterrupted()
	return m.Run()
}

func start(ctx context.Context) (*platform.Platform, error) {
	members := platform.DefaultMembers()
	p, err := platform.StartFleet(ctx, platform.Options{
		Name: fmt.Sprintf("e2e-%d", os.Getpid()), Members: append(members, spare), HubReplicas: 2, Monitoring: true,
		HubProxies: true, Images: true, Quick: true, Out: os.Stderr,
	})
	if err != nil {
		return nil, err
	}
	if err := p.InstallHub(ctx); err != nil {
		return p, err
	}
	for _, member := range members {
		store := "file://" + filepath.Join(p.Fleet.Dir(), "backups", member.Name)
		if err := p.Join(ctx, member, "--set", "agent.backup.stores={"+store+"}"); err != nil {
			return p, err
		}
	}
	hub, err := p.Client("hub", platform.Scheme())
	if err != nil {
		return p, err
	}
	return p, hub.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: platform.Namespace}})
}
