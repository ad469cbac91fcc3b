// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package try

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/engines/workload"
)

// explainUnready returns why pods of the trial's Deployments are not available, as an addition to OLM's message,
// which only says that a Deployment is not available. It returns "" if the reasons are not known.
func (t *trial) explainUnready(ctx context.Context) string {
	var deployments appsv1.DeploymentList
	var pods corev1.PodList
	if t.List(ctx, &deployments, client.InNamespace(t.namespace)) != nil ||
		t.List(ctx, &pods, client.InNamespace(t.namespace)) != nil {
		return ""
	}
	var out strings.Builder
	for _, reason := range listUnready(deployments.Items, pods.Items) {
		out.WriteString("; " + reason)
	}
	return out.String()
}

// listUnready returns why pods of Deployments are not available. It is pure.
func listUnready(deployments []appsv1.Deployment, pods []corev1.Pod) []string {
	var out []string
	for i := range deployments {
		d := &deployments[i]
		selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
		if err != nil || workload.IsComplete(d) {
			continue
		}
		own := slices.DeleteFunc(slices.Clone(pods), func(p corev1.Pod) bool {
			return !selector.Matches(labels.Set(p.Labels))
		})
		for _, p := range workload.Problems(d, own) {
			out = append(out, fmt.Sprintf("Deployment %s: %s", d.Name, workload.FormatProblem(p)))
		}
	}
	return out
}
