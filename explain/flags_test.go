// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/bellwether-dev/bellwether/explain"
)

// TestReadFlag checks that a flag is read as the programs read it.
func TestReadFlag(t *testing.T) {
	t.Parallel()
	variable := []corev1.EnvVar{{Name: "BELLWETHER_AGENT_VIEW_PORTS", Value: "3-4"}}
	agent := corev1.Container{Name: "agent", Env: variable}
	for name, test := range map[string]struct {
		container corev1.Container
		want      string
	}{
		"not set":                  {corev1.Container{Args: []string{"--view-ports-of=1-2"}}, ""},
		"one argument":             {corev1.Container{Args: []string{"--view-ports=1-2"}}, "1-2"},
		"two arguments":            {corev1.Container{Args: []string{"--view-ports", "1-2"}}, "1-2"},
		"without its value":        {corev1.Container{Args: []string{"--view-ports"}}, ""},
		"the command":              {corev1.Container{Command: []string{"agent", "--view-ports=1-2"}}, "1-2"},
		"the last argument counts": {corev1.Container{Args: []string{"--view-ports=5-6", "--view-ports=1-2"}}, "1-2"},
		"a variable":               {agent, "3-4"},
		"a variable of the hub":    {corev1.Container{Name: "hub", Env: variable}, ""},
		"an argument and a variable": {
			corev1.Container{Name: "agent", Args: []string{"--view-ports=1-2"}, Env: variable}, "1-2"},
		"an empty argument and a variable": {
			corev1.Container{Name: "agent", Args: []string{"--view-ports="}, Env: variable}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := explain.ReadFlag(test.container, "view-ports"); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			d := &appsv1.Deployment{}
			d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "proxy"}, test.container}
			if got := (explain.Deployment{Deployment: d}).ReadFlag("view-ports"); got != test.want {
				t.Errorf("of the Deployment: got %q, want %q", got, test.want)
			}
		})
	}
}
