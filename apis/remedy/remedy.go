// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package remedy holds the one table of what each reason means, what a person
// can do about it, and what happens without a person. Condition messages of the
// hub and of agents, `bellwether why` and the reference of reasons all use it.
// It imports the API only, reads nothing and knows no objects.
package remedy

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Observer is the program that found a reason. The same reason can need another
// action on the hub than on a fleet cluster.
type Observer string

const (
	// Hub is the hub's controllers.
	Hub Observer = "Hub"
	// Agent is the agent on a fleet cluster.
	Agent Observer = "Agent"
)

// Remedy is what to know of one reason.
type Remedy struct {
	Reason string
	// Means says in one sentence what the state is.
	Means string
	// Do lists what a person can do, the likeliest first.
	Do []Action
	// Next says in one sentence what happens without a person. Empty: nothing.
	Next string
}

// Action is one thing that a person can do.
type Action struct {
	// Text is one or more sentences.
	Text string `json:"text"`
	// Command does it, or shows what is needed for it. Words in capital letters
	// stand for what the reader has to fill in.
	Command string `json:"command,omitempty"`
	// only restricts the action to reasons that this observer found.
	only Observer
}

// Names are what the placeholders of the table stand for. An empty name leaves
// its placeholder as it is, with two exceptions: a command that takes a ROLLOUT
// also takes the operator's name, and -n is left out without a HubNamespace.
type Names struct {
	Cluster, Operator, Rollout, Catalog string
	// HubNamespace is where the operator, its rollouts and its catalog are.
	HubNamespace string
	// Namespace is where the operator runs on the cluster.
	Namespace string
	// Package of the operator.
	Package string
	// Program is how the user calls bellwether; empty means by that name.
	Program string
}

// For returns the remedy for a reason.
func For(reason string) (Remedy, bool) {
	r, known := byReason[reason]
	return r, known
}

// Advice is the end of a condition's message: the likeliest action for what this
// observer found, and what happens without a person. It is empty for a reason
// that nobody has to act on.
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

// For returns the actions for what this observer found, with names filled in.
// An empty observer stands for all of them.
func (r Remedy) For(by Observer, names Names) []Action {
	var actions []Action
	for _, a := range r.Do {
		if a.only == "" || by == "" || a.only == by {
			actions = append(actions, Action{Text: names.fill(a.Text), Command: names.fillCommand(a.Command)})
		}
	}
	return actions
}

// NextFor is Next with names filled in.
func (r Remedy) NextFor(names Names) string { return names.fill(r.Next) }

// String is the action in one line: the text and, in backquotes, the command.
func (a Action) String() string {
	if a.Command == "" {
		return a.Text
	}
	return strings.TrimSuffix(a.Text, ".") + ": `" + a.Command + "`."
}

var placeholder = regexp.MustCompile(`\b(CLUSTER|OPERATOR|ROLLOUT|CATALOG|PACKAGE|NAMESPACE|HUBNAMESPACE)\b`)

func (n Names) fill(text string) string {
	return placeholder.ReplaceAllStringFunc(text, func(word string) string {
		return cmp.Or(map[string]string{
			"CLUSTER": n.Cluster, "OPERATOR": n.Operator, "ROLLOUT": cmp.Or(n.Rollout, n.Operator),
			"CATALOG": n.Catalog, "NAMESPACE": n.Namespace,
			"HUBNAMESPACE": n.HubNamespace, "PACKAGE": n.Package,
		}[word], word)
	})
}

// namespaced are the placeholders of objects in a namespace of the hub.
var namespaced = regexp.MustCompile(`\b(OPERATOR|ROLLOUT|CATALOG)\b`)

func (n Names) fillCommand(command string) string {
	arguments, ours := strings.CutPrefix(command, "bellwether ")
	if !ours {
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
	return slices.Concat(general(), fleet(), catalog(), operator(), objectives(), rollout(), rollback(), heldBack(),
		notPermitted(), cluster(), adopted(), olm(), backup(), storageMigration(), silence(), probeInputs(), probe())
}

// Observed returns the remedies for reasons that are on no condition of the API:
// what comparing objects shows, and what Kubernetes says of pods.
func Observed() []Remedy { return slices.Concat(compared(), workloads()) }

var byReason = index()

func index() map[string]Remedy {
	out := map[string]Remedy{}
	for _, r := range slices.Concat(All(), Observed()) {
		out[r.Reason] = r
	}
	return out
}

// Markdown is the reference of reasons.
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

func writeEntries(out *strings.Builder, remedies []Remedy) {
	for _, r := range remedies {
		fmt.Fprintf(out, "\n## %s\n\n%s\n", r.Reason, r.Means)
		if len(r.Do) > 0 {
			out.WriteByte('\n')
		}
		for _, do := range r.Do {
			prefix := ""
			if do.only != "" {
				prefix = fmt.Sprintf("(%s) ", strings.ToLower(string(do.only)))
			}
			fmt.Fprintf(out, "- %s%s\n", prefix, do)
		}
		if r.Next != "" {
			fmt.Fprintf(out, "\nWhat happens next: %s\n", r.Next)
		}
	}
}
