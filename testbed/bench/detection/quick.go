// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package detection

import (
	"fmt"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/alerts/slo"
)

// A prototype of decision 0029: slices of 15 s for critical operators, and a tier of 15 minutes over them. It is not
// part of the rules that users get.
const (
	quickStep  = 15 * time.Second
	quickAlert = "PrototypeQuickBurn"
	quickSlice = "prototype:sli_bad_quick:slice"
)

// ruleFiles are the rules of a fleet with one critical operator, and those with the prototype beside them.
func ruleFiles() (shipped, quick []byte, err error) {
	id := types.NamespacedName{Namespace: "fleet", Name: "echo"}
	rules, err := slo.Build(slo.Set{Default: slo.DefaultProfile(), Operators: []slo.Operator{
		{Namespace: id.Namespace, Name: id.Name, Criticality: "Critical"},
	}})
	if err != nil {
		return nil, nil, fmt.Errorf("build rules: %w", err)
	}
	if shipped, err = slo.File(rules.All()); err != nil {
		return nil, nil, err
	}
	prototype, err := quickGroup(rules.All())
	if err != nil {
		return nil, nil, err
	}
	quick, err = slo.File(append(rules.All(), prototype))
	return shipped, quick, err
}

// quickGroup looks at an SLI every 15 s. A page needs three bad slices of the last 15 minutes, and more than 1 % of the
// budget of 30 days gone in them; it leaves to the rules of 60 s what several operators of a cluster, or several
// clusters of a version, have in common.
func quickGroup(groups []monitoringv1.RuleGroup) (monitoringv1.RuleGroup, error) {
	var bad string
	for _, g := range groups {
		for _, rule := range g.Rules {
			if rule.Record == series.SLIBad && rule.Labels[series.SLI] == sli {
				bad = rule.Expr.String()
			}
		}
	}
	if bad == "" {
		return monitoringv1.RuleGroup{}, fmt.Errorf("no rule records the SLI %s", sli)
	}
	const (
		window, short = 15 * time.Minute, 75 * time.Second
		factor        = 0.01 * float64(slo.DefaultPeriod) / float64(window)
	)
	burns := func(window time.Duration) string {
		return fmt.Sprintf("count_over_time(%s[%ds]) / %d > on (operator_namespace, operator, sli) group_left () "+
			"(%g * (1 - %s))", quickSlice, int(window.Seconds()), int(window/quickStep), factor, series.SLOObjective)
	}
	page := fmt.Sprintf("%s\nand %s\nand count_over_time(%s[%ds]) >= %d\nunless on (cluster) "+
		"count by (cluster) (group by (cluster, operator_namespace, operator) (%s)) >= 3",
		burns(window), burns(short), quickSlice, int(window.Seconds()), slo.Guard, quickSlice)
	interval := monitoringv1.Duration("15s")
	return monitoringv1.RuleGroup{Name: "prototype", Interval: &interval, Rules: []monitoringv1.Rule{
		{Record: quickSlice, Labels: map[string]string{series.SLI: sli}, Expr: intstr.FromString(fmt.Sprintf(
			"(%s) > 0\nand on (operator_namespace, operator) %s{criticality=\"Critical\"}", bad, series.SLOTeam))},
		{Alert: quickAlert, Expr: intstr.FromString(page)},
	}}, nil
}
