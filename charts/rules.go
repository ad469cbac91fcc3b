// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// Permissions are the permissions of a component of Bellwether on its cluster.
type Permissions struct {
	// Cluster is granted in all namespaces. Namespaced is granted in one namespace: for the hub,
	// the namespace of the rules for Prometheus.
	Cluster, Namespaced []rbacv1.PolicyRule
}

// Rules returns the permissions that the chart always grants to a component: hub,
// agent, or agent-read, which is an agent with read-only access. Permissions that
// depend on values are not included.
func Rules(component string) (Permissions, error) {
	var out Permissions
	data, err := files.ReadFile("bellwether/files/" + component + "-rules.yaml")
	if err != nil {
		return out, fmt.Errorf("read rules of the %s: %w", component, err)
	}
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), len(data))
	for {
		var role rbacv1.Role // a ClusterRole has the same rules
		if err := documents.Decode(&role); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return out, fmt.Errorf("decode rules of the %s: %w", component, err)
		}
		switch role.Kind {
		case "ClusterRole":
			out.Cluster = append(out.Cluster, role.Rules...)
		case "Role":
			out.Namespaced = append(out.Namespaced, role.Rules...)
		}
	}
}
