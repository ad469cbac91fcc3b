// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Text is the plan for a person who is about to agree to it.
func Text(o Observation, w Options, steps []Step) string {
	var out strings.Builder
	fmt.Fprintf(&out, "The cluster of context %s (%s, Kubernetes %s):\n", o.Context, o.Server, o.Kubernetes)
	for i, s := range steps {
		fmt.Fprintf(&out, "\n%d. %s\n", i+1, s.Title)
		for _, line := range s.lines(w) {
			fmt.Fprintf(&out, "   %s\n", line)
		}
	}
	return out.String()
}

func (s Step) lines(w Options) []string {
	var out []string
	for _, object := range s.Apply {
		out = append(out, "+ "+Name(object))
	}
	if len(s.Run) > 0 {
		out = append(out, "$ "+w.CommandLine(s.Run))
	}
	if s.Uninstall != "" {
		out = append(out, "- Helm release "+SystemNamespace+"/"+s.Uninstall)
	}
	for _, namespace := range s.Delete {
		out = append(out, "- Namespace "+namespace)
	}
	for _, object := range s.Remove {
		out = append(out, "- "+Name(object))
	}
	return out
}

// CommandLine is what the user would type to run a command.
func (w Options) CommandLine(args []string) string {
	quoted := make([]string, 0, len(args))
	for _, arg := range args {
		if strings.ContainsAny(arg, " $&|;<>(){}*?'\"\\`") {
			arg = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
		quoted = append(quoted, arg)
	}
	return w.Program + " " + strings.Join(quoted, " ")
}

// Name is an object's kind and name, as in Deployment bellwether-demo/demo-catalog.
func Name(object *unstructured.Unstructured) string {
	name := object.GetName()
	if object.GetNamespace() != "" {
		name = object.GetNamespace() + "/" + name
	}
	return object.GetKind() + " " + name
}

// End says how to look around, and how to remove everything.
func End(o Observation, w Options) string {
	flags := " " + strings.Join(w.cluster(o), " ")
	var out strings.Builder
	line := func(command, comment string) { fmt.Fprintf(&out, "  %s   # %s\n", command, comment) }
	out.WriteString("\nThe demo stays on the cluster. Look around:\n")
	line(w.Program+" fleet get "+Cluster+flags, "the cluster and its operators")
	line(w.Program+" operator get "+Namespace+"/"+Operator+flags, "the sample operator on the hub")
	line(w.Program+" why "+Cluster+" "+Namespace+"/"+Operator+flags, "its state, and why")
	line(w.Program+" doctor"+flags, "the installation itself")
	line("kubectl -n "+Package+" get subscriptions,installplans,csv,pods"+flags, "what OLM made of it")
	out.WriteString("\nRemove everything:\n")
	fmt.Fprintf(&out, "  %s demo --remove%s\n", w.Program, flags)
	return out.String()
}
