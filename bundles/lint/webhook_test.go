// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWebhooks(t *testing.T) {
	const (
		own = "rules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [echoes]}]\n"
	)
	rules := func(groups, operations, resources, scope string) string {
		return "rules: [{apiGroups: [" + groups + "], apiVersions: [v1], operations: [" + operations +
			"], resources: [" + resources + "], scope: '" + scope + "'}]\n"
	}
	for name, tc := range map[string]struct {
		rule, webhook string
		want          []string
	}{
		"fails closed for its own kinds": {"webhook-fail-closed", own,
			[]string{"warning: webhook w.example.com fails closed, and deployment echo-operator has one replica"}},
		"fails closed for others": {"webhook-fail-closed", rules("apps", "CREATE", "deployments", "*"),
			[]string{"error: webhook w.example.com fails closed, and deployment echo-operator has one replica: it " +
				"stops writes to kinds that are not the operator's own"}},
		"fails closed for what has a label": {"webhook-fail-closed", rules("apps", "CREATE", "deployments", "*") +
			"objectSelector: {matchLabels: {a: b}}\n",
			[]string{"warning: webhook w.example.com fails closed, and deployment echo-operator has one replica: it " +
				"stops writes to objects with its labels, also of kinds that are not the operator's own"}},
		"fails closed for what has a label of some value": {"webhook-fail-closed",
			rules("apps", "CREATE", "deployments", "*") +
				"objectSelector: {matchExpressions: [{key: a, operator: Exists}]}\n",
			[]string{"warning: webhook w.example.com fails closed, and deployment echo-operator has one replica: it " +
				"stops writes to objects with its labels, also of kinds that are not the operator's own"}},
		"fails closed for what lacks a label": {"webhook-fail-closed", rules("apps", "CREATE", "deployments", "*") +
			"objectSelector: {matchExpressions: [{key: a, operator: DoesNotExist}]}\n",
			[]string{"error: webhook w.example.com fails closed, and deployment echo-operator has one replica: it " +
				"stops writes to kinds that are not the operator's own"}},
		"fails closed for all objects": {"webhook-fail-closed", rules("apps", "CREATE", "deployments", "*") +
			"objectSelector: {}\n",
			[]string{"error: webhook w.example.com fails closed, and deployment echo-operator has one replica: it " +
				"stops writes to kinds that are not the operator's own"}},
		"fails open": {"webhook-fail-closed", own + "failurePolicy: Ignore\n", nil},
		"blocks what it runs as": {"webhook-blocks-itself", rules("'', apps", "CREATE", "pods, deployments", "*"),
			[]string{"error: webhook w.example.com has to approve deployments, pods, those of its own operator " +
				"included"}},
		"blocks everything": {"webhook-blocks-itself", rules("apps", "'*'", "'*'", "Namespaced"),
			[]string{"error: webhook w.example.com has to approve deployments, replicasets, those of its own " +
				"operator included"}},
		"everything of its own": {"webhook-blocks-itself", rules("example.com", "'*'", "'*'", "*"), nil},
		"subresources only":     {"webhook-blocks-itself", rules("''", "CREATE", "pods/exec", "*"), nil},
		"every subresource": {"webhook-blocks-itself", rules("''", "CREATE", "pods/*", "*"),
			[]string{"error: webhook w.example.com has to approve pods, pods/binding, those of its own operator " +
				"included"}},
		"deletions only": {"webhook-blocks-itself", rules("''", "DELETE", "pods", "*"), nil},
		"of the cluster": {"webhook-blocks-itself", rules("'*'", "CREATE", "'*'", "Cluster"), nil},
		"not those without a label": {"webhook-blocks-itself", rules("''", "CREATE", "pods", "*") +
			"objectSelector: {matchLabels: {a: b}}\n", nil},
		"selects everything": {"webhook-blocks-itself", rules("''", "CREATE", "pods", "*") + "objectSelector: {}\n",
			[]string{"error: webhook w.example.com has to approve pods, those of its own operator included"}},
		"no time-out": {"webhook-timeout", own,
			[]string{"info: webhook w.example.com has no time-out of its own"}},
		"ten seconds": {"webhook-timeout", own + "timeoutSeconds: 10\n", nil},
		"nothing of its effect": {"webhook-side-effects", own,
			[]string{"error: webhook w.example.com does not say whether it has side effects"}},
		"converts nothing": {"webhook-conversion", "type: ConversionWebhook\nadmissionReviewVersions: [v1]\n",
			[]string{"error: webhook w.example.com converts nothing: it names no CustomResourceDefinition"}},
		"an old review": {"webhook-conversion",
			"type: ConversionWebhook\nadmissionReviewVersions: [v1beta1]\nconversionCRDs: [echoes.example.com]\n",
			[]string{"info: webhook w.example.com converts echoes.example.com, which has one version"}},
		"an unknown review": {"webhook-conversion",
			"type: ConversionWebhook\nadmissionReviewVersions: [v2]\nconversionCRDs: [echoes.example.com]\n",
			[]string{"error: webhook w.example.com accepts neither v1 nor v1beta1 of ConversionReview"}},
		"an unknown review and an old one": {"webhook-conversion",
			"type: ConversionWebhook\nadmissionReviewVersions: [v2, v1beta1]\nconversionCRDs: [echoes.example.com]\n",
			[]string{"info: webhook w.example.com converts echoes.example.com, which has one version"}},
		"no review": {"webhook-conversion", "type: ConversionWebhook\nconversionCRDs: [echoes.example.com]\n",
			[]string{"error: webhook w.example.com accepts neither v1 nor v1beta1 of ConversionReview"}},
		"converts one version": {"webhook-conversion",
			"type: ConversionWebhook\nadmissionReviewVersions: [v1]\nconversionCRDs: [echoes.example.com]\n",
			[]string{"info: webhook w.example.com converts echoes.example.com, which has one version"}},
	} {
		t.Run(name, func(t *testing.T) {
			text := "-- manifests/echo-operator.clusterserviceversion.yaml.patch --\nspec:\n  webhookdefinitions:\n  " +
				"- generateName: w.example.com\n" +
				"    deploymentName: echo-operator\n" + indent(tc.webhook, 4)
			if diff := cmp.Diff(tc.want, messages(t, tc.rule, text)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Definitions of v1beta1 are the operator's own kinds in the same way as definitions of v1.
func TestWebhooksOfOldDefinitions(t *testing.T) {
	text := `-- manifests/chimes.yaml --
apiVersion: apiextensions.k8s.io/v1beta1
kind: CustomResourceDefinition
metadata: {name: chimes.old.example.com}
spec:
  group: old.example.com
  version: v1
  scope: Namespaced
  preserveUnknownFields: false
  names: {kind: Chime, plural: chimes}
-- manifests/echo-operator.clusterserviceversion.yaml.patch --
spec:
  webhookdefinitions:
  - generateName: w.example.com
    deploymentName: echo-operator
    rules: [{apiGroups: [old.example.com], apiVersions: [v1], operations: [CREATE], resources: [chimes]}]
  - generateName: c.example.com
    type: ConversionWebhook
    deploymentName: echo-operator
    admissionReviewVersions: [v1]
    conversionCRDs: [chimes.old.example.com]
`
	want := []string{"warning: webhook w.example.com fails closed, and deployment echo-operator has one replica"}
	if diff := cmp.Diff(want, messages(t, "webhook-fail-closed", text)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want = []string{"info: webhook c.example.com converts chimes.old.example.com, which has one version"}
	if diff := cmp.Diff(want, messages(t, "webhook-conversion", text)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
