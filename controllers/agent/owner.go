// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
	"github.com/bellwether-dev/bellwether/engines/localpolicy"
	"github.com/bellwether-dev/bellwether/rollouts/holds"
)

// newEffectiveVetoReader returns a function that reads the veto that the agent reports to the
// hub. An agent with read-only access refuses every change.
func newEffectiveVetoReader(live client.Reader, o Options) func(context.Context) (*v1alpha1.ClusterVeto, error) {
	if !o.ReadOnly {
		return newVetoReader(live, o.OwnNamespace)
	}
	return func(context.Context) (*v1alpha1.ClusterVeto, error) { return holds.ReadOnlyVeto(), nil }
}

// newVetoReader returns a function that reads the veto of a cluster's owner without the cache.
// The function returns nil if there is no veto.
func newVetoReader(live client.Reader, namespace string) func(context.Context) (*v1alpha1.ClusterVeto, error) {
	return func(ctx context.Context) (*v1alpha1.ClusterVeto, error) {
		found, err := kit.FindConfigMap(ctx, live, namespace, v1alpha1.VetoConfigMap)
		if err != nil || found == nil {
			return nil, err
		}
		v := holds.ParseVeto(found.Data)
		return &v, nil
	}
}

// newPolicyReader returns a function that reads the policy of a cluster's owner without the
// cache. Without a policy, the result has Absent set.
func newPolicyReader(live client.Reader, namespace string) func(context.Context) (*localpolicy.Policy, error) {
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

// describePermission returns the instructions for the owner of a cluster to let its agent read one Secret in the
// agent's namespace.
func describePermission(_, _ string) string {
	return "add it to agent.pullSecrets of the chart on the cluster"
}
