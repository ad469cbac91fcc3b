// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package agentbundle

import (
	"bytes"
	"fmt"
	"os"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// BuildManifest returns a file for kubectl apply. With it, a cluster's OLM installs this
// version of the agent, or installs it again if a later version is broken. catalog is the
// image of the catalog by digest.
//
// The Subscription and the OperatorGroup have the names that the agent uses, so the agent
// takes over these objects when the hub requests that the agent manages itself. The
// CatalogSource is not used after that.
func BuildManifest(version, catalog string) ([]byte, error) {
	metadata := func(name string) map[string]any { return map[string]any{"name": name, "namespace": Namespace} }
	group := metadata("bellwether")
	// An unhealthy global catalog must not stop the agent.
	group["annotations"] = map[string]any{"olm.operatorframework.io/exclude-global-namespace-resolution": "true"}
	const source = v1alpha1.AgentPackage + "-catalog"
	var out bytes.Buffer
	for _, object := range []any{
		corev1ac.Namespace(Namespace),
		map[string]any{
			"apiVersion": operatorsv1.GroupVersion.String(), "kind": operatorsv1.OperatorGroupKind,
			"metadata": group,
			// The next version may replace a failed version.
			"spec": map[string]any{"upgradeStrategy": operatorsv1.UpgradeStrategyUnsafeFailForward},
		},
		map[string]any{
			"apiVersion": operatorsv1alpha1.CatalogSourceCRDAPIVersion, "kind": operatorsv1alpha1.CatalogSourceKind,
			"metadata": metadata(source),
			"spec": map[string]any{
				"sourceType": operatorsv1alpha1.SourceTypeGrpc, "image": catalog, "displayName": "Bellwether agent",
				"grpcPodConfig": map[string]any{
					"securityContextConfig": operatorsv1alpha1.Restricted,
					// The image has only the catalog: OLM serves it with its own program.
					"extractContent": map[string]any{"catalogDir": "/configs"},
				},
			},
		},
		map[string]any{
			"apiVersion": operatorsv1alpha1.SubscriptionCRDAPIVersion, "kind": operatorsv1alpha1.SubscriptionKind,
			"metadata": metadata(v1alpha1.AgentPackage),
			"spec": map[string]any{
				"name": v1alpha1.AgentPackage, "channel": Channel, "source": source, "sourceNamespace": Namespace,
				"startingCSV": v1alpha1.AgentPackage + ".v" + version,
				// OLM can install only this version: the catalog is named by digest, and
				// this is its newest version.
				"installPlanApproval": operatorsv1alpha1.ApprovalAutomatic,
			},
		},
	} {
		text, err := yaml.Marshal(object)
		if err != nil {
			return nil, fmt.Errorf("encode manifest: %w", err)
		}
		out.WriteString("---\n")
		out.Write(text)
	}
	return out.Bytes(), nil
}

// makeFolder creates a folder and its parents.
func makeFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	return nil
}
