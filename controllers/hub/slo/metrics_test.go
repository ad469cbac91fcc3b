// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit/kittest"
)

func TestMetricsOfObjectives(t *testing.T) {
	slo := func(name, operator string, loaded, feasible metav1.ConditionStatus) *v1alpha1.OperatorSLO {
		o := &v1alpha1.OperatorSLO{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: name}}
		o.Spec.Operator = operator
		for condition, status := range map[string]metav1.ConditionStatus{v1alpha1.ConditionRulesLoaded: loaded,
			v1alpha1.ConditionFeasible: feasible} {
			o.Status.Conditions = append(o.Status.Conditions, metav1.Condition{Type: condition, Status: status})
		}
		return o
	}
	install := func(namespace, name string, admission *v1alpha1.Admission) *v1alpha1.OperatorInstall {
		operator := v1alpha1.OperatorReference{Namespace: namespace, Name: name}
		o := &v1alpha1.OperatorInstall{ObjectMeta: metav1.ObjectMeta{Namespace: "bellwether-eu",
			Name: operator.InstallName()}}
		o.Spec.Cluster, o.Spec.Operator, o.Spec.Admission = "eu", operator, admission
		return o
	}
	gauges := kittest.NewGauges(t, collect,
		slo("echo", "echo", metav1.ConditionTrue, metav1.ConditionTrue),
		slo("echo-2", "echo", metav1.ConditionFalse, metav1.ConditionTrue), // the worst one counts
		slo("quiet", "quiet", metav1.ConditionUnknown, metav1.ConditionFalse),
		install("ops", "echo", &v1alpha1.Admission{}), install("other", "echo", &v1alpha1.Admission{}),
		install("ops", "waits", nil),
	)
	want := `
# HELP bellwether_operator_expected 1 for each operator that should run on a cluster, as the hub knows it.
# TYPE bellwether_operator_expected gauge
bellwether_operator_expected{cluster="eu",operator="echo",operator_namespace="ops"} 1
bellwether_operator_expected{cluster="eu",operator="echo",operator_namespace="other"} 1
# HELP bellwether_slo_feasible Whether all objectives of a managed operator can work.
# TYPE bellwether_slo_feasible gauge
bellwether_slo_feasible{operator="echo",operator_namespace="ops"} 1
bellwether_slo_feasible{operator="quiet",operator_namespace="ops"} 0
# HELP bellwether_slo_rules_loaded Whether Prometheus evaluates the rules of a managed operator's objectives; absent where the hub cannot know.
# TYPE bellwether_slo_rules_loaded gauge
bellwether_slo_rules_loaded{operator="echo",operator_namespace="ops"} 0
`
	gauges.Compare(t, want)
}
