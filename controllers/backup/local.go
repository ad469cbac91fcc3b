// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/backups/archive"
	"github.com/bellwether-dev/bellwether/backups/capture"
	"github.com/bellwether-dev/bellwether/controllers/backup/plan"
	"github.com/bellwether-dev/bellwether/controllers/kit"
	"github.com/bellwether-dev/bellwether/engines/olmv0"
)

// The agent reads the custom resources themselves by the aggregated role
// bellwether-agent-backup, which the owner of the cluster fills.

// Local reads the fleet cluster.
type Local struct {
	// Live reads past the cache.
	Live client.Reader
	// Writer creates reviews of what the agent may do.
	Writer client.Writer
}

// Requests returns what a backup of an operator reads: the custom resources that
// its ClusterServiceVersion owns, and Secrets if the selector is not nil.
func (l Local) Requests(ctx context.Context, namespace, bundle string, secrets *metav1.LabelSelector) (
	[]capture.Request, error) {
	definitions, err := olmv0.OwnedDefinitions(ctx, l.Live, namespace, bundle)
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("%w: there is no ClusterServiceVersion %s/%s", plan.ErrNotInstalled, namespace, bundle)
	case err != nil:
		return nil, err
	}
	var requests []capture.Request
	for i := range definitions {
		if resource, ok := plan.Resource(&definitions[i]); ok {
			requests = append(requests, capture.Request{Resource: resource})
		}
	}
	if secrets != nil {
		selector, err := metav1.LabelSelectorAsSelector(secrets)
		if err != nil {
			return nil, fmt.Errorf("read the selector of Secrets: %w", err)
		}
		requests = append(requests, capture.Request{Selector: selector.String(),
			Resource: archive.Resource{Version: "v1", Plural: "secrets", Kind: "Secret"}})
	}
	return requests, nil
}

// CheckPermissions returns a *plan.ForbiddenError if the agent may not list all of
// what it has to save.
func (l Local) CheckPermissions(ctx context.Context, operator string, requests []capture.Request) error {
	var missing []string
	for _, r := range requests {
		permitted, err := kit.IsPermitted(ctx, l.Writer, authorizationv1.ResourceAttributes{Verb: "list",
			Group: r.Group, Version: r.Version, Resource: r.Plural})
		if err != nil {
			return err
		}
		if !permitted {
			missing = append(missing, r.Name())
		}
	}
	if len(missing) > 0 {
		return &plan.ForbiddenError{Operator: operator, Resources: missing}
	}
	return nil
}
