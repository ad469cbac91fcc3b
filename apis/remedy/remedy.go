// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package remedy holds the only table of what each reason means, what a person can do about it, and what happens
// without a person. Condition messages of the hub and of agents, `bellwether why` and the reference of reasons use
// the table. The package imports only the API, and reads no objects.
package remedy

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Observer is the program that reported a reason. The same reason can need another action on the hub than on a
// fleet cluster.
type Observer string

const (
	// Hub means the hub's controllers.
	Hub Observer = "Hub"
	// Agent means the agent on a fleet cluster.
	Agent Observer = "Agent"
)

// Remedy is the advice for one reason.
type Remedy struct {
	Reason string
	// Means describes the state in one sentence.
	Means string
	// Do lists what a person can do, the likeliest action first.
	Do []Action
	// Next says in one sentence what happens without a person; empty if nothing happens.
	Next string
}

// Action is something that a person can do.
type Action struct {
	// Text is one or more sentences.
	Text string `json:"text"`
	// Command carries out the action, or shows what is needed for it. Words in capital letters are placeholders for
	// the reader's values.
	Command string `json:"command,omitempty"`
	// only restricts the action to reasons that this observer reported; empty for all observers.
	only Observer
}

// Names are the values for the placeholders of the table. An empty name leaves its placeholder as it is, with two
// exceptions: a ROLLOUT without a name gets the operator's name, and -n is left out without a HubNamespace.
type Names struct {
	Cluster, Operator, Rollout, Catalog string
	// HubNamespace is the namespace of the operator, its rollouts and its catalog.
	HubNamespace string
	// Namespace is the namespace of the operator on the cluster.
	Namespace string
	// Package is the package of the operator.
	Package string
	// Program is how the user calls bellwether; empty means "bellwether".
	Program string
}

// For returns the remedy for a reason; false if the reason is not known.
func For(reason string) (Remedy, bool) {
	r, known := byReason[reason]
	return r, known
}

// Advice returns the end of a condition's message: the likeliest action for a reason that this observer reported, and
// what happens without a person. It is empty for a reason that needs no action.
func Advice(reason string, by Observer, names Names) string {
	r := byReason[reason]
	var sentences []string
	if actions := r.For(by, names); len(actions) > 0 {
		sentences = append(sentences, actions[0].String())
	}
	if r.Next != "" {
		sentences = append(sentences, names.fill(r.Next))
	}
	return strings.Join(sentences, " ")
}

// For returns the actions for a reason that this observer reported, with names filled in. An empty observer means
// all observers.
func (r Remedy) For(by Observer, names Names) []Action {
	var actions []Action
	for _, a := range r.Do {
		if a.only == "" || by == "" || a.only == by {
			actions = append(actions, Action{Text: names.fill(a.Text), Command: names.fillCommand(a.Command)})
		}
	}
	return actions
}

// NextFor returns Next with names filled in.
func (r Remedy) NextFor(names Names) string { return names.fill(r.Next) }

// String returns the action in one line: the text and, in backquotes, the command.
func (a Action) String() string {
	if a.Command == "" {
		return a.Text
	}
	return strings.TrimSuffix(a.Text, ".") + ": `" + a.Command + "`."
}

// placeholder matches the placeholders in the texts of the table.
var placeholder = regexp.MustCompile(`\b(CLUSTER|OPERATOR|ROLLOUT|CATALOG|PACKAGE|NAMESPACE|HUBNAMESPACE)\b`)

// fill replaces the placeholders in a text.
func (n Names) fill(text string) string {
	return placeholder.ReplaceAllStringFunc(text, func(word string) string {
		return cmp.Or(map[string]string{
			"CLUSTER": n.Cluster, "OPERATOR": n.Operator, "ROLLOUT": cmp.Or(n.Rollout, n.Operator),
			"CATALOG": n.Catalog, "NAMESPACE": n.Namespace,
			"HUBNAMESPACE": n.HubNamespace, "PACKAGE": n.Package,
		}[word], word)
	})
}

// namespaced matches the placeholders of objects in a namespace of the hub.
var namespaced = regexp.MustCompile(`\b(OPERATOR|ROLLOUT|CATALOG)\b`)

// fillCommand replaces the placeholders in a command, and adds the program's name and -n to a command of bellwether.
func (n Names) fillCommand(command string) string {
	arguments, isOwn := strings.CutPrefix(command, "bellwether ")
	if !isOwn {
		return n.fill(command)
	}
	filled := cmp.Or(n.Program, "bellwether") + " " + n.fill(arguments)
	if n.HubNamespace != "" && namespaced.MatchString(arguments) {
		filled += " -n " + n.HubNamespace
	}
	return filled
}

// All returns the remedies for the reasons of the API, in the API's order.
func All() []Remedy {
	return slices.Concat(listGeneral(), listFleet(), listCatalog(), listOperator(), listObjectives(), listRollout(),
		listRollback(), listBlocked(), listNotPermitted(), listCluster(), listAdoption(), listOLM(), listBackup(),
		listStorageMigration(), listSilence(), listProbeInputs(), listProbe())
}

// Observed returns the remedies for reasons that are on no condition of the API: results of comparing objects, and
// what Kubernetes reports about pods.
func Observed() []Remedy { return slices.Concat(listCompared(), listWorkloads()) }

var byReason = indexByReason()

// indexByReason returns all remedies by their reason.
func indexByReason() map[string]Remedy {
	out := map[string]Remedy{}
	for _, r := range slices.Concat(All(), Observed()) {
		out[r.Reason] = r
	}
	return out
}

// Markdown returns the reference of reasons for the documentation.
func Markdown() string {
	var out strings.Builder
	out.WriteString("# Condition reasons\n\nWhat each reason on a Bellwether object means, what you can do, and what " +
		"happens by itself. `bellwether why CLUSTER OPERATOR` prints the entries that apply, with names filled in. " +
		"Words in capital letters stand for names and values.\n")
	writeEntries(&out, All())
	out.WriteString("\n# Reasons that are on no condition\n\n`bellwether why` finds these by comparing objects, or, " +
		"with `--cluster-kubeconfig`, on the pods of the operator.\n")
	writeEntries(&out, Observed())
	return out.String()
}

// writeEntries writes an entry of the reference for each remedy. An action for one observer begins with the name of the
// observer.
func writeEntries(out *strings.Builder, remedies []Remedy) {
	for _, r := range remedies {
		fmt.Fprintf(out, "\n## %s\n\n%s\n", r.Reason, r.Means)
		if len(r.Do) > 0 {
			out.WriteByte('\n')
		}
		for _, action := range r.Do {
			prefix := ""
			if action.only != "" {
				prefix = fmt.Sprintf("(%s) ", strings.ToLower(string(action.only)))
			}
			fmt.Fprintf(out, "- %s%s\n", prefix, action)
		}
		if r.Next != "" {
			fmt.Fprintf(out, "\nWhat happens next: %s\n", r.Next)
		}
	}
}
