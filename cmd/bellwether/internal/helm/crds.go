// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"context"
	"fmt"
	"slices"
	"time"

	"helm.sh/helm/v3/pkg/chart"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
)

// ApplyCRDs applies the chart's CRDs, or those with the given names.
func ApplyCRDs(ctx context.Context, c client.Client, ch *chart.Chart, timeout time.Duration, names ...string) error {
	for _, crd := range ch.CRDObjects() {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(crd.File.Data, u); err != nil {
			return fmt.Errorf("read %s: %w", crd.Filename, err)
		}
		if len(names) > 0 && !slices.Contains(names, u.GetName()) {
			continue
		}
		if err := applyCRD(ctx, c, u, timeout); err != nil {
			return err
		}
	}
	return nil
}

// applyCRD applies a CRD, which Helm would only ever create, and waits until
// the API server serves it.
func applyCRD(ctx context.Context, c client.Client, u *unstructured.Unstructured, timeout time.Duration) error {
	if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), hub.FieldOwner,
		client.ForceOwnership); err != nil {
		return fmt.Errorf("apply CRD %s: %w", u.GetName(), err)
	}
	return hub.Poll(ctx, timeout, func() (bool, error) {
		if err := c.Get(ctx, client.ObjectKeyFromObject(u), u); err != nil {
			return false, fmt.Errorf("get CRD %s: %w", u.GetName(), err)
		}
		return established(u), nil
	})
}

func established(crd *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	for _, c := range conditions {
		if m, ok := c.(map[string]any); ok && m["type"] == "Established" && m["status"] == "True" {
			return true
		}
	}
	return false
}
