// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// RenderPlan returns the plan as text, which the user confirms.
func RenderPlan(o Observation, options Options, steps []Step) string {
	var out strings.Builder
	fmt.Fprintf(&out, "The cluster of context %s (%s, Kubernetes %s):\n", o.Context, o.Server, o.Kubernetes)
	for i, s := range steps {
		fmt.Fprintf(&out, "\n%d. %s\n", i+1, s.Title)
		for _, line := range s.listLines(options) {
			fmt.Fprintf(&out, "   %s\n", line)
		}
	}
	return out.String()
}

// listLines returns a line for each object, command, release and namespace of the step.
func (s Step) listLines(options Options) []string {
	var out []string
	for _, object := range s.Apply {
		out = append(out, "+ "+FormatName(object))
	}
	if len(s.Run) > 0 {
		out = append(out, "$ "+options.CommandLine(s.Run))
	}
	if s.Uninstall != "" {
		out = append(out, "- Helm release "+SystemNamespace+"/"+s.Uninstall)
	}
	for _, namespace := range s.Delete {
		out = append(out, "- Namespace "+namespace)
	}
	for _, object := range s.Remove {
		out = append(out, "- "+FormatName(object))
	}
	return out
}

// CommandLine returns the command line that a user types to run a command of this program.
func (options Options) CommandLine(args []string) string {
	quoted := make([]string, 0, len(args))
	for _, arg := range args {
		if strings.ContainsAny(arg, " $&|;<>(){}*?'\"\\`") { // characters with a meaning for the shell
			arg = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
		quoted = append(quoted, arg)
	}
	return options.Program + " " + strings.Join(quoted, " ")
}

// FormatName returns an object's kind and name, as in Deployment bellwether-demo/demo-catalog.
func FormatName(object *unstructured.Unstructured) string {
	name := object.GetName()
	if object.GetNamespace() != "" {
		name = object.GetNamespace() + "/" + name
	}
	return object.GetKind() + " " + name
}

// RenderNextSteps returns the text after the installation: commands that show the demo, and how to remove it.
func RenderNextSteps(o Observation, options Options) string {
	flags := " " + strings.Join(options.listHubFlags(o), " ")
	var out strings.Builder
	writeCommand := func(command, comment string) { fmt.Fprintf(&out, "  %s   # %s\n", command, comment) }
	out.WriteString("\nThe demo stays on the cluster. Look around:\n")
	writeCommand(options.Program+" fleet get "+Cluster+flags, "the cluster and its operators")
	writeCommand(options.Program+" operator get "+Namespace+"/"+Operator+flags, "the sample operator on the hub")
	writeCommand(options.Program+" why "+Cluster+" "+Namespace+"/"+Operator+flags, "its state, and why")
	writeCommand(options.Program+" doctor"+flags, "the installation itself")
	writeCommand("kubectl -n "+Package+" get subscriptions,installplans,csv,pods"+flags, "what OLM made of it")
	out.WriteString("\nRemove everything:\n")
	fmt.Fprintf(&out, "  %s demo --remove%s\n", options.Program, flags)
	return out.String()
}
