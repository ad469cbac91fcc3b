// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package paging

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// listDueTests returns the policies in force whose last self-test was too long ago.
func listDueTests(in Input, inForce []Policy,
	statuses map[types.NamespacedName]v1alpha1.PagingPolicyStatus) []types.NamespacedName {
	var out []types.NamespacedName
	for _, p := range inForce {
		status, exists := statuses[toKey(p)]
		if !exists || p.Spec.SelfTest == nil {
			continue
		}
		if last := status.SelfTest; last == nil || in.Now.Sub(last.At.Time) >= p.Spec.SelfTest.Every.Duration {
			out = append(out, toKey(p))
		}
	}
	return out
}

// reportTest sets the result of a self-test that has ended in the status. Otherwise the last
// result stays, except for a policy without self-tests, whose status has no result.
func reportTest(status *v1alpha1.PagingPolicyStatus, in Input, p *v1alpha1.PagingPolicy) {
	if p.Spec.SelfTest == nil {
		status.SelfTest = nil
		return
	}
	if test, ended := in.Tests[toObjectKey(p)]; ended {
		status.SelfTest = &test
	}
}
