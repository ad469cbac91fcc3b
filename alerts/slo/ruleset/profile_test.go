// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package ruleset

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// TestProfileOfTheBundle checks the effects of the profile in an operator's bundle.
func TestProfileOfTheBundle(t *testing.T) {
	probed := []v1alpha1.ProbedService{{Name: "echo", Port: 80, Scheme: v1alpha1.ProbeHTTP,
		Interval: &metav1.Duration{Duration: 30 * time.Second}, Timeout: &metav1.Duration{Duration: 5 * time.Second}}}
	for name, test := range map[string]struct {
		says     string
		edit     func(*v1alpha1.OperatorSLO)
		services []v1alpha1.ProbedService
		target   string // of reconcile
		reason   string // of Feasible
		message  string
	}{
		"nothing": {reason: "Succeeded", target: "99"},
		"a Service": {says: `{"services":[{"name":"echo","port":80}]}`, services: probed, reason: "Succeeded",
			target: "99"},
		"an objective": {says: `{"objectives":[{"sli":"reconcile","target":"95"}]}`, reason: "Succeeded",
			target: "95"},
		"people know more": {says: `{"objectives":[{"sli":"reconcile","target":"95"}]}`,
			edit: target("reconcile", "99.5"), reason: "Succeeded", target: "99.5"},
		"none of it counts": {says: `{"services":[{"name":"echo","port":80}]}`,
			edit: func(s *v1alpha1.OperatorSLO) { s.Spec.Profile = v1alpha1.ProfileNone }, reason: "Succeeded"},
		"what cannot be": {says: `{"services":[{"name":"echo","port":0}]}`, reason: "ProfileInvalid",
			message: "bundle echo.v1.1.0: service \"echo\": 0 is no port", target: "99"},
		"an unknown SLI": {says: `{"objectives":[{"sli":"reconcil","target":"95"}]}`, reason: "ProfileInvalid",
			message: "did you mean reconcile?", target: "99"},
	} {
		t.Run(name, func(t *testing.T) {
			echo := operator("a", "echo", 9)
			echo.Status.Target = &v1alpha1.TargetVersion{Version: "1.1.0", Bundle: "echo.v1.1.0"}
			if test.says != "" {
				echo.Status.Target.SLO = &runtime.RawExtension{Raw: []byte(test.says)}
			}
			s := automaticSLO(echo, 8)
			if test.edit != nil {
				test.edit(&s)
			}
			install := v1alpha1.OperatorInstall{ObjectMeta: metav1.ObjectMeta{Namespace: "bellwether-c",
				Name: "a.echo"}}
			install.Spec.Operator = v1alpha1.OperatorReference{Namespace: "a", Name: "echo"}
			got := next(t, Input{Operators: []v1alpha1.ManagedOperator{echo}, SLOs: []v1alpha1.OperatorSLO{s},
				Installs: []v1alpha1.OperatorInstall{install}})

			var services []v1alpha1.ProbedService
			for _, install := range got.Installs {
				services = install.Services
			}
			if diff := cmp.Diff(test.services, services); diff != "" {
				t.Errorf("services -want +got:\n%s", diff)
			}
			status := got.Statuses[toKey(&s)]
			percent := ""
			for _, o := range status.Objectives {
				if o.SLI == "reconcile" {
					percent = o.Target
				}
			}
			feasible := conditions.Get(status.Conditions, v1alpha1.ConditionFeasible)
			if percent != test.target || feasible.Reason != test.reason ||
				!strings.Contains(feasible.Message, test.message) {
				t.Errorf("target %q, Feasible %s: %s", percent, feasible.Reason, feasible.Message)
			}
			if ready(status) != "True Succeeded" {
				t.Errorf("ready: %s", ready(status))
			}
		})
	}
}
