// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/alerts/budgets"
	"github.com/bellwether-dev/bellwether/alerts/paging"
	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Notified reads the hub's PagingPolicies, and returns what says as what people are notified of an alert
// with some labels: page or ticket. Where the hub cannot be read within QueryTimeout, that is the severity of the
// alert's rule.
func (a *Env) Notified(ctx context.Context) func(labels map[string]string) string {
	ctx, cancel := context.WithTimeout(ctx, QueryTimeout)
	defer cancel()
	policies := a.assignedPolicies(ctx)
	return func(labels map[string]string) string { return paging.Notified(policies, labels) }
}

// assignedPolicies are the PagingPolicies with their operators; none if the hub cannot be read.
func (a *Env) assignedPolicies(ctx context.Context) []paging.Policy {
	h, err := a.Hub()
	if err != nil {
		return nil
	}
	var policies v1alpha1.PagingPolicyList
	var operators v1alpha1.ManagedOperatorList
	var slos v1alpha1.OperatorSLOList
	for _, list := range []client.ObjectList{&policies, &operators, &slos} {
		if err := h.List(ctx, list); err != nil {
			return nil
		}
	}
	var out []paging.Policy
	for i := range policies.Items {
		out = append(out, paging.PolicyOf(&policies.Items[i]))
	}
	paging.Assign(paging.Operators(operators.Items, slos.Items), out)
	return out
}

// asNotified sets of each firing alert as what people are notified of it, where that is not what its rule says.
func (a *Env) asNotified(ctx context.Context, report *budgets.Report) {
	var notified func(map[string]string) string
	for _, list := range [][]budgets.Budget{report.Objectives, report.Clusters} {
		for i := range list {
			b := &list[i]
			for j := range b.Firing {
				alert := &b.Firing[j]
				if alert.Severity != series.Page || alert.Scope != series.ScopeOperator {
					continue // it is what its rule says
				}
				if notified == nil {
					notified = a.Notified(ctx)
				}
				if kind := notified(map[string]string{series.Severity: alert.Severity, series.Scope: alert.Scope,
					series.OperatorNamespace: b.Namespace, series.Operator: b.Operator}); kind != alert.Severity {
					alert.Notified = kind
				}
			}
		}
	}
}
