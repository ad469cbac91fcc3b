// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/alerts/paging"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// dueTests are the policies in force whose last self-test is too long ago.
func dueTests(in Input, inForce []paging.Policy,
	statuses map[types.NamespacedName]v1alpha1.PagingPolicyStatus) []types.NamespacedName {
	var out []types.NamespacedName
	for _, p := range inForce {
		status, exists := statuses[keyOf(p)]
		if !exists || p.Spec.SelfTest == nil {
			continue
		}
		if last := status.SelfTest; last == nil || in.Now.Sub(last.At.Time) >= p.Spec.SelfTest.Every.Duration {
			out = append(out, keyOf(p))
		}
	}
	return out
}

// reportTest puts what became of a test into the status.
func reportTest(status *v1alpha1.PagingPolicyStatus, in Input, p *v1alpha1.PagingPolicy) {
	if p.Spec.SelfTest == nil {
		status.SelfTest = nil
		return
	}
	if test, ended := in.Tests[keyOfObject(p)]; ended {
		status.SelfTest = &test
	}
}
