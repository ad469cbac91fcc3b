// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// TestOfCondition checks that a bad condition never has the severity Good.
func TestOfCondition(t *testing.T) {
	for conditionType, want := range map[string]struct{ isTrue, isFalse, isUnknown Severity }{
		v1alpha1.ConditionReady:               {Good, Warning, Warning},
		v1alpha1.ConditionReconciling:         {Neutral, Neutral, Neutral},
		v1alpha1.ConditionStalled:             {Bad, Good, Bad},
		v1alpha1.ConditionReconcileFailing:    {Bad, Good, Bad},
		v1alpha1.ConditionOnline:              {Good, Warning, Warning},
		v1alpha1.ConditionHibernating:         {Warning, Good, Warning},
		v1alpha1.ConditionBlockedVersionInUse: {Warning, Good, Warning},
		v1alpha1.ConditionVersionHeld:         {Warning, Good, Warning},
		v1alpha1.ConditionOutsideAccess:       {Warning, Good, Warning},
		v1alpha1.ConditionDrifted:             {Warning, Good, Warning},
		v1alpha1.ConditionBudgetsExcluded:     {Good, Warning, Warning},
	} {
		for status, severity := range map[metav1.ConditionStatus]Severity{metav1.ConditionTrue: want.isTrue,
			metav1.ConditionFalse: want.isFalse, metav1.ConditionUnknown: want.isUnknown} {
			if got := ConditionSeverity(metav1.Condition{Type: conditionType, Status: status}); got != severity {
				t.Errorf("%s=%s has severity %v, want %v", conditionType, status, got, severity)
			}
		}
	}
	unknown := metav1.Condition{Type: v1alpha1.ConditionHibernating, Status: metav1.ConditionFalse,
		Reason: v1alpha1.ReasonPowerUnknown}
	if got := ConditionSeverity(unknown); got != Warning {
		t.Errorf("a power state that is not known has severity %v, want %v", got, Warning)
	}
}

// TestEveryPhaseHasASeverity checks that a new phase of the API is Neutral only if the table says so.
func TestEveryPhaseHasASeverity(t *testing.T) {
	for _, p := range constants(t, "RolloutPhase") {
		if _, ok := rolloutSeverities[v1alpha1.RolloutPhase(p)]; !ok {
			t.Errorf("rollout phase %s has no severity", p)
		}
	}
	for _, p := range constants(t, "WavePhase") {
		if _, ok := waveSeverities[v1alpha1.WavePhase(p)]; !ok {
			t.Errorf("wave phase %s has no severity", p)
		}
	}
}

// constants returns the values of the constants of a string type that the API declares for rollouts.
func constants(t *testing.T, typeName string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../v1alpha1/operatorrollout.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if name, ok := spec.Type.(*ast.Ident); ok && name.Name == typeName {
			value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			values = append(values, value)
		}
		return true
	})
	if len(values) < 5 {
		t.Fatalf("found the %s values %v only", typeName, values)
	}
	return values
}
