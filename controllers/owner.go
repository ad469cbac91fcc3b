// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
	"github.com/bellwether-dev/bellwether/engines/localpolicy"
	"github.com/bellwether-dev/bellwether/rollouts/veto"
)

// vetoOf returns what the agent reports as the veto of the cluster's owner: an agent that may only read refuses every
// change.
func vetoOf(live client.Reader, o AgentOptions) func(context.Context) (*v1alpha1.ClusterVeto, error) {
	if !o.ReadOnly {
		return readVeto(live, o.OwnNamespace)
	}
	return func(context.Context) (*v1alpha1.ClusterVeto, error) { return veto.ReadOnly(), nil }
}

// readVeto returns what reads the veto of a cluster's owner past the cache.
func readVeto(live client.Reader, namespace string) func(context.Context) (*v1alpha1.ClusterVeto, error) {
	return func(ctx context.Context) (*v1alpha1.ClusterVeto, error) {
		found, err := kit.FindConfigMap(ctx, live, namespace, v1alpha1.VetoConfigMap)
		if err != nil || found == nil {
			return nil, err
		}
		v := veto.Parse(found.Data)
		return &v, nil
	}
}

// readPolicy returns what reads the policy of a cluster's owner past the cache.
func readPolicy(live client.Reader, namespace string) func(context.Context) (*localpolicy.Policy, error) {
	return func(ctx context.Context) (*localpolicy.Policy, error) {
		found, err := kit.FindConfigMap(ctx, live, namespace, localpolicy.ConfigMap)
		switch {
		case err != nil:
			return nil, err
		case found == nil:
			return &localpolicy.Policy{OwnNamespace: namespace, Absent: true}, nil
		}
		return localpolicy.Parse(found.Data, namespace), nil
	}
}
