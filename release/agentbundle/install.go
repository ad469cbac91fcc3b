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

	"github.com/bellwether-dev/bellwether/apis/own"
)

// Manifest is what makes a cluster's OLM install this version of the agent, or install it again where a later one is
// broken: one file for kubectl apply. catalog is an image by digest.
//
// The Subscription and the OperatorGroup have the names that the agent gives, so the agent takes them over once the
// hub tells it to manage itself. The CatalogSource is not used from then on.
func Manifest(version, catalog string) ([]byte, error) {
	metadata := func(name string) map[string]any { return map[string]any{"name": name, "namespace": Namespace} }
	group := metadata("bellwether")
	// An unhealthy global catalog must not stop the agent.
	group["annotations"] = map[string]any{"olm.operatorframework.io/exclude-global-namespace-resolution": "true"}
	const source = own.AgentPackage + "-catalog"
	var out bytes.Buffer
	for _, object := range []any{
		corev1ac.Namespace(Namespace),
		map[string]any{
			"apiVersion": operatorsv1.GroupVersion.String(), "kind": operatorsv1.OperatorGroupKind,
			"metadata": group,
			// The next version may replace one that has failed.
			"spec": map[string]any{"upgradeStrategy": operatorsv1.UpgradeStrategyUnsafeFailForward},
		},
		map[string]any{
			"apiVersion": operatorsv1alpha1.CatalogSourceCRDAPIVersion, "kind": operatorsv1alpha1.CatalogSourceKind,
			"metadata": metadata(source),
			"spec": map[string]any{
				"sourceType": operatorsv1alpha1.SourceTypeGrpc, "image": catalog, "displayName": "Bellwether agent",
				"grpcPodConfig": map[string]any{
					"securityContextConfig": operatorsv1alpha1.Restricted,
					// The image is the catalog alone: OLM serves it with a program of its own.
					"extractContent": map[string]any{"catalogDir": "/configs"},
				},
			},
		},
		map[string]any{
			"apiVersion": operatorsv1alpha1.SubscriptionCRDAPIVersion, "kind": operatorsv1alpha1.SubscriptionKind,
			"metadata": metadata(own.AgentPackage),
			"spec": map[string]any{
				"name": own.AgentPackage, "channel": Channel, "source": source, "sourceNamespace": Namespace,
				"startingCSV": own.AgentPackage + ".v" + version,
				// Nothing but this version can come: the catalog is named by digest, and this is its newest.
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

func makeFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	return nil
}
