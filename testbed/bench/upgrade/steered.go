// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"context"
	"fmt"
	"net"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/bench/lab"
	"github.com/bellwether-dev/bellwether/testbed/echo"
	"github.com/bellwether-dev/bellwether/testbed/echo/bundle"
	"github.com/bellwether-dev/bellwether/testbed/process"
)

// steered is an upgrade with Bellwether: the benchmark writes the admission to the hub, and the agent does the rest.
type steered struct {
	lab   *lab.Lab
	agent *process.Process
	pin   v1alpha1.CatalogPin

	namespace string
}

func newSteered(ctx context.Context, l *lab.Lab) (*steered, error) {
	content, err := echo.FBC(from, to)
	if err != nil {
		return nil, fmt.Errorf("make catalog: %w", err)
	}
	s := &steered{lab: l}
	if s.pin, err = l.Publish(ctx, "echo", content); err != nil {
		return nil, err
	}
	if s.agent, err = l.StartAgent(); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *steered) stop(ctx context.Context) { s.agent.Stop(ctx) }

func (s *steered) name() string { return "bellwether" }

func (s *steered) ends() []phase { return []phase{served, succeeded, reported} }

func (s *steered) install(version string, revision int64) *v1alpha1.OperatorInstall {
	return lab.Install(s.namespace, revision, v1alpha1.Release{
		Package: bundle.Package, Channel: bundle.Channel, Version: version, Bundle: bundle.CSVName(version),
		Catalog: s.pin,
		Install: v1alpha1.InstallSettings{Mode: v1alpha1.InstallAllNamespaces, Namespace: s.namespace},
	})
}

func (s *steered) prepare(ctx context.Context, namespace string) error {
	s.namespace = namespace
	oi := s.install(from, 1)
	if err := s.lab.Hub.Create(ctx, oi); err != nil {
		return fmt.Errorf("create install: %w", err)
	}
	if err := s.lab.Running(ctx, oi); err != nil {
		return fmt.Errorf("%w; the agent's log ends with:\n%s", err, s.agent.Tail())
	}
	return nil
}

func (s *steered) start(ctx context.Context, c *clock) error {
	oi := s.install(to, 2)
	if err := s.listen(ctx, oi, c); err != nil {
		return err
	}
	c.begin()
	return s.lab.Admit(ctx, oi)
}

// listen notes what the hub learns, and when the view changes: that drops every connection to it, also one that never
// said anything.
func (s *steered) listen(ctx context.Context, oi *v1alpha1.OperatorInstall, c *clock) error {
	err := follow(ctx, s.lab.Hub, oi.Namespace, &v1alpha1.OperatorInstallList{}, func(seen *v1alpha1.OperatorInstall) {
		if seen.Name == oi.Name && seen.Status.SucceededHash == oi.Spec.Admission.Hash {
			c.reach(reported)
		}
	})
	if err != nil {
		return err
	}
	address, err := s.view(ctx, oi)
	if err != nil {
		return err
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("connect to the view: %w", err)
	}
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	go func() {
		for buffer := make([]byte, 1024); ; {
			if _, err := conn.Read(buffer); err != nil {
				c.reach(served)
				return
			}
		}
	}()
	return nil
}

func (s *steered) view(ctx context.Context, oi *v1alpha1.OperatorInstall) (string, error) {
	current := &v1alpha1.OperatorInstall{ObjectMeta: metav1.ObjectMeta{Namespace: oi.Namespace, Name: oi.Name}}
	err := lab.Until(ctx, func(ctx context.Context) (bool, error) {
		err := s.lab.Hub.Get(ctx, keyOf(current), current)
		return current.Status.OLMDetails().ViewAddress != "", err
	})
	if err != nil {
		return "", fmt.Errorf("learn the view's address: %w", err)
	}
	return current.Status.OLMDetails().ViewAddress, nil
}

func (s *steered) cleanUp(ctx context.Context) error {
	if err := lab.Removed(ctx, s.lab.Hub, s.install(to, 2)); err != nil {
		return err
	}
	return removeNamespace(ctx, s.lab, s.namespace)
}
