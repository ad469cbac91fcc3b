// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// agentContainer is the name of an agent's container in its Deployment.
const agentContainer = "agent"

// ReadFlag returns the value of a flag of the hub or of an agent, by the container that runs the program; empty if it
// is not set. name is without dashes. As in these programs, the last argument counts, and both --name=value and
// --name value are read. In the container of an agent, the variable BELLWETHER_AGENT_NAME counts if no argument sets
// the flag; variables whose value is not in the container itself are not read. A boolean flag is read only with its
// value, as in --name=true.
func ReadFlag(c corev1.Container, name string) string {
	args := slices.Concat(c.Command, c.Args)
	for i, a := range slices.Backward(args) {
		if value, ok := strings.CutPrefix(a, "--"+name+"="); ok {
			return value
		}
		if a == "--"+name && i+1 < len(args) {
			return args[i+1]
		}
	}
	if c.Name != agentContainer {
		return ""
	}
	variable := "BELLWETHER_AGENT_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
	for _, e := range c.Env {
		if e.Name == variable {
			return e.Value
		}
	}
	return ""
}

// ReadFlag returns the value of a flag in the first container of the Deployment that sets it to a value; see the
// function ReadFlag. It is empty if no container does, or if the Deployment does not exist.
func (d Deployment) ReadFlag(name string) string {
	if d.Deployment == nil {
		return ""
	}
	for _, c := range d.Deployment.Spec.Template.Spec.Containers {
		if value := ReadFlag(c, name); value != "" {
			return value
		}
	}
	return ""
}
