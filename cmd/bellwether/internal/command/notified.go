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

// policiesTimeout limits how long a command waits for the hub's PagingPolicies.
const policiesTimeout = 3 * time.Second

// NewNotifiedFunc reads the hub's PagingPolicies. It returns a function that returns how people are notified of an
// alert with the given labels: page or ticket. If the hub cannot be read within a few seconds, NewNotifiedFunc prints a
// warning, and the function returns the severity of the alert's rule.
func (a *Env) NewNotifiedFunc(ctx context.Context) func(labels map[string]string) string {
	limitedCtx, cancel := context.WithTimeoutCause(ctx, policiesTimeout,
		fmt.Errorf("no answer within %s", policiesTimeout))
	defer cancel()
	policies, err := a.readAssignedPolicies(limitedCtx)
	if err != nil && ctx.Err() == nil { // after an interrupt, the command ends without this warning
		if cause := context.Cause(limitedCtx); cause != nil {
			err = cause
		}
		a.Warn("some of the pages below may be tickets, since the hub's PagingPolicies could not be read: %s\n",
			a.FormatSentence(err))
	}
	return func(labels map[string]string) string { return paging.NotifiedSeverity(policies, labels) }
}

// readAssignedPolicies returns the PagingPolicies with the operators that are assigned to each.
func (a *Env) readAssignedPolicies(ctx context.Context) ([]paging.Policy, error) {
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
		out = append(out, paging.ToPolicy(&policies.Items[i]))
	}
	paging.Assign(paging.Operators(operators.Items, slos.Items), out)
	return out, nil
}

// setNotified sets Notified of each firing alert, if people are notified of the alert in
// another way than its rule has.
func (a *Env) setNotified(ctx context.Context, report *budgets.Report) {
	var notified func(map[string]string) string
	for _, b := range slices.Concat(report.Objectives, report.Clusters) {
		for i := range b.Firing {
			alert := &b.Firing[i]
			if alert.Severity != series.Page || alert.Scope != series.ScopeOperator {
				continue // policies change only the pages about operators
			}
			if notified == nil {
				notified = a.NewNotifiedFunc(ctx)
			}
			if kind := notified(map[string]string{series.Severity: alert.Severity, series.Scope: alert.Scope,
				series.OperatorNamespace: b.Namespace, series.Operator: b.Operator}); kind != alert.Severity {
				alert.Notified = kind
			}
		}
	}
}
