// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/backups"
	"github.com/bellwether-dev/bellwether/backups/archive"
	"github.com/bellwether-dev/bellwether/backups/capture"
	"github.com/bellwether-dev/bellwether/controllers/kit"
)

// The aggregated role bellwether-agent-backup allows the agent to read custom resources. The
// owner of the cluster adds the permissions to that role.

// Definitions reads the definitions of operators that the engine has
// installed on the fleet cluster.
type Definitions interface {
	// ListOwned returns the definitions of the custom resources of a bundle. The error is a NotFound
	// if the bundle is not installed in the namespace.
	ListOwned(ctx context.Context, namespace, bundle string) ([]apiextensionsv1.CustomResourceDefinition, error)
}

// Local reads the fleet cluster.
type Local struct {
	Definitions Definitions
	// Writer creates access reviews to check the agent's permissions.
	Writer client.Writer
}

// ListRequests returns the resources that a backup of an operator contains: the custom resources
// that its ClusterServiceVersion owns, and Secrets if the selector is not nil.
func (l Local) ListRequests(ctx context.Context, namespace, bundle string, secrets *metav1.LabelSelector) (
	[]capture.Request, error) {
	definitions, err := l.Definitions.ListOwned(ctx, namespace, bundle)
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("%w: there is no ClusterServiceVersion %s/%s", backups.ErrNotInstalled, namespace,
			bundle)
	case err != nil:
		return nil, err
	}
	var requests []capture.Request
	for i := range definitions {
		if resource, ok := backups.FindResource(&definitions[i]); ok {
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

// CheckPermissions returns a *backups.ForbiddenError if the agent has no permission to list
// all resources of a backup.
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
		return &backups.ForbiddenError{Operator: operator, Resources: missing}
	}
	return nil
}
