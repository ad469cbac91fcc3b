// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/alerts/budgets"
	"github.com/bellwether-dev/bellwether/alerts/paging"
	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// policiesTimeout bounds how long a command waits for the hub's PagingPolicies.
const policiesTimeout = 3 * time.Second

// Notified reads the hub's PagingPolicies, and returns what says as what people are notified of an alert
// with some labels: page or ticket. Where the hub cannot be read within a few seconds, that is the severity of the
// alert's rule, and stderr says so.
func (a *Env) Notified(ctx context.Context) func(labels map[string]string) string {
	within, cancel := context.WithTimeoutCause(ctx, policiesTimeout, fmt.Errorf("no answer within %s", policiesTimeout))
	defer cancel()
	policies, err := a.assignedPolicies(within)
	if err != nil && ctx.Err() == nil {
		if cause := context.Cause(within); cause != nil {
			err = cause
		}
		a.Warn("some of the pages below may be tickets, since the hub's PagingPolicies could not be read: %s\n",
			a.Sentence(err))
	}
	return func(labels map[string]string) string { return paging.Notified(policies, labels) }
}

// assignedPolicies are the PagingPolicies with their operators.
func (a *Env) assignedPolicies(ctx context.Context) ([]paging.Policy, error) {
	h, err := a.Hub()
	if err != nil {
		return nil, err
	}
	var policies v1alpha1.PagingPolicyList
	var operators v1alpha1.ManagedOperatorList
	var slos v1alpha1.OperatorSLOList
	for _, list := range []client.ObjectList{&policies, &operators, &slos} {
		if err := h.List(ctx, list); err != nil {
			return nil, err
		}
	}
	var out []paging.Policy
	for i := range policies.Items {
		out = append(out, paging.PolicyOf(&policies.Items[i]))
	}
	paging.Assign(paging.Operators(operators.Items, slos.Items), out)
	return out, nil
}

// asNotified sets of each firing alert as what people are notified of it, where that is not what its rule says.
func (a *Env) asNotified(ctx context.Context, report *budgets.Report) {
	var notified func(map[string]string) string
	for _, b := range slices.Concat(report.Objectives, report.Clusters) {
		for i := range b.Firing {
			alert := &b.Firing[i]
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
